"""Times one stage of an iteration, or all of them, on a random model.

  python -m experiments.benchmark --stage=step
  python -m experiments.benchmark --stage=generate --num_prompts=32 --repeats=9

Prints one JSON line: median and quartiles of the seconds, tokens/s, model
FLOP/s and bytes/s with the shares of what this process reached on a plain
matrix product and a plain copy, seconds to trace and compile, peak memory.
Every row generates --new_tokens tokens, or with --mean_length ends at a random
token (lengths are geometric); then the costs stand for the longest case, and
only seconds and generated tokens say something, and times_full_width: seconds a
token over those of 64 rows that all last, taken in turn. An update of such rows
is packed if they fit in `capacity` places a group, and times_unpacked is its
time over that without packing, taken in turn; the peak of memory is then that
of both. With --stage=step the stages are also timed alone, in turn with the
step. FLOP are those of the model (2 a weight and token, thrice for an update,
attention over what is visible, the prompt once a group), without recomputation.
"""

import dataclasses
import functools
import json
import resource

from absl import app, flags
import jax
import numpy as np

from experiments.benchmarks import ratios
from experiments.benchmarks.stages import PRESETS, STAGES, Stages
from rl_jax.planning import costs
from rl_jax.runtime import host_memory
from rl_jax.runtime import mesh as mesh_lib

_STAGE = flags.DEFINE_enum('stage', 'step', (*STAGES, 'step'), 'What to time.')
_PRESET = flags.DEFINE_enum('preset', 'small', list(PRESETS), 'Model.')
_count = functools.partial(flags.DEFINE_integer, lower_bound=1)
_PROMPTS = _count('num_prompts', 8, 'Groups.')
_GROUP = _count('group_size', 8, 'Rows a group.')
_PROMPT = _count('prompt_tokens', 64, 'Tokens of a prompt.')
_NEW = _count('new_tokens', 128, 'Tokens of a response.')
_MEAN = flags.DEFINE_float(
  'mean_length', 0, 'Mean length; 0: nothing ends.', lower_bound=0
)
_REPEATS = _count('repeats', 5, 'Timed calls after a first one.')
_PIECES = _count(
  'microbatches', None, 'Pieces of an update; by default a group a CPU device.'
)
_SLOTS = _count('slots', None, 'Rows decoded at a time.')


def default_pieces(shape):
  """Small microbatches cost nothing on CPU and keep the activations small."""
  groups = shape.num_prompts // jax.device_count()
  return groups if jax.default_backend() == 'cpu' else 1


def main(argv):
  """Compiles, times and prints one line."""
  del argv
  cfg, stage = PRESETS[_PRESET.value], _STAGE.value
  host_memory.give_back_after_compilations()
  shape = costs.Shape(_PROMPTS.value, _GROUP.value, _PROMPT.value, _NEW.value)
  try:
    ratios.check_groups(shape, stage, _MEAN.value, jax.device_count())
  except ValueError as error:
    raise app.UsageError(str(error)) from None
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=jax.device_count()))
  pieces = _PIECES.value or default_pieces(shape)
  with jax.set_mesh(mesh):
    flop_rate, byte_rate = costs.roofline(cfg.compute_dtype, mesh)
    options = dict(
      microbatches=pieces, mean_length=_MEAN.value, slots=_SLOTS.value
    )
    make = functools.partial(Stages, cfg, stage=stage, mesh=mesh, **options)
    stages = make(shape)
    calls = ratios.calls_in_turn(stages, make, shape, stage, _MEAN.value)
    # Rollouts of 256 rows and of 64 need different amounts of memory.
    untimed = int('full_width' in calls)
    times = costs.seconds_in_turn(calls, _REPEATS.value, untimed)
    low, median, high = np.quantile(times[stage], (0.25, 0.5, 0.75))
  flops = costs.model_flops(cfg, shape, stage) / median
  generated = int(stages.full.length_B.sum())
  row = {
    'stage': stage,
    'preset': _PRESET.value,
    **dataclasses.asdict(shape),
    'devices': jax.device_count(),
    'microbatches': pieces,
    'device': jax.devices()[0].device_kind,
    'jax': jax.__version__,
    'seconds_median': median,
    'seconds_quartiles': [low, high],
    'generated_tokens': generated,
    'generated_tokens_per_second': generated / median,
    'row_tokens_per_second': (shape.rows * shape.prompt_tokens + generated)
    / median,
    'flop_per_second': flops,
    'share_of_matrix_product': flops / flop_rate,
    'compile_seconds': stages.compile_seconds,
    'peak_memory_gb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
  }
  if stage == 'generate':
    moved = costs.least_bytes(cfg, shape, stages.state.params) / median
    row |= {'bytes_per_second': moved, 'share_of_copy': moved / byte_rate}
  row |= ratios.compared(stages, shape, stage, times, generated)
  print(json.dumps(row))


if __name__ == '__main__':
  app.run(main)
