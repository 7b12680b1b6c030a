"""Times one stage of an iteration, or all of them, on a random model.

  python -m experiments.benchmark --stage=step
  python -m experiments.benchmark --stage=generate --num_prompts=32 --repeats=9

Prints one JSON line: median and quartiles of the seconds, tokens/s, model
FLOP/s and bytes/s with the shares of what this process reached on a plain
matrix product and a plain copy, seconds to trace and compile, peak memory.
Every row generates --new_tokens tokens, or with --mean_length ends at a random
token (lengths are geometric); then the costs stand for the longest case, and
only seconds and generated tokens say something, and times_full_width: seconds a
token over those of 64 rows that all last, measured in the same process. An
update of such rows is packed if they fit in `capacity` places a group, and
times_unpacked is its time over that without packing, taken in turn; the peak of
memory is then that of both. With --stage=step the stages are also timed alone,
in turn with the step. FLOP are those of the model (2 a weight and token, thrice
for an update, attention over what is visible, the prompt once a group), without
recomputation.
"""

import dataclasses
import functools
import json
import resource

from absl import app, flags
import jax
import numpy as np

from experiments import benchmark_costs as costs
from experiments.benchmark_stages import PRESETS, STAGES, Stages
from rl_jax import host_memory, sharding

_STAGE = flags.DEFINE_enum('stage', 'step', (*STAGES, 'step'), 'What to time.')
_PRESET = flags.DEFINE_enum('preset', 'small', list(PRESETS), 'Model.')
_PROMPTS = flags.DEFINE_integer('num_prompts', 8, 'Groups.')
_GROUP = flags.DEFINE_integer('group_size', 8, 'Rows a group.')
_PROMPT = flags.DEFINE_integer('prompt_tokens', 64, 'Tokens of a prompt.')
_NEW = flags.DEFINE_integer('new_tokens', 128, 'Tokens of a response.')
_MEAN = flags.DEFINE_float('mean_length', 0, 'Mean length; 0: nothing ends.')
_REPEATS = flags.DEFINE_integer('repeats', 5, 'Timed calls after a first one.')
_PIECES = flags.DEFINE_integer(
  'microbatches', None, 'Pieces of an update; by default a group a CPU device.'
)
_SLOTS = flags.DEFINE_integer('slots', None, 'Rows decoded at a time.')
FULL_WIDTH = 64
PARTS = ('generate', 'update')  # of a step; the rest takes milliseconds


def default_pieces(shape):
  """Small microbatches cost nothing on CPU and keep the activations small."""
  groups, rest = divmod(shape.num_prompts, jax.device_count())
  return 1 if rest or jax.default_backend() != 'cpu' else groups


def full_width_seconds(cfg, shape, mesh):
  """Seconds per token of 64 rows of which none ends early."""
  shape = dataclasses.replace(shape, num_prompts=FULL_WIDTH // shape.group_size)
  stages = Stages(cfg, shape, 'generate', mesh)
  times = costs.seconds(lambda: stages.call('generate'), _REPEATS.value)
  return float(np.median(times)) / shape.rows / shape.new_tokens


def compared(stages, stage, times):
  """What was timed in turn with the stage, beside it."""
  if stages.capacity:
    ratio = np.median(np.divide(times[stage], times['unpacked']))
    return {'capacity': stages.capacity, 'times_unpacked': ratio}
  if stage != 'step':
    return {}
  parts = {name: float(np.median(times[name])) for name in PARTS}
  over = sum(parts.values()) / float(np.median(times[stage]))
  return {'stage_seconds': parts, 'stages_over_step': over}


def main(argv):
  """Compiles, times and prints one line."""
  del argv
  cfg, stage = PRESETS[_PRESET.value], _STAGE.value
  host_memory.give_back_after_compilations()
  shape = costs.Shape(_PROMPTS.value, _GROUP.value, _PROMPT.value, _NEW.value)
  mesh = sharding.make_mesh(sharding.MeshConfig(data=jax.device_count()))
  pieces = _PIECES.value or default_pieces(shape)
  with jax.set_mesh(mesh):
    flop_rate, byte_rate = costs.roofline(cfg.compute_dtype, mesh)
    options = dict(pieces=pieces, mean_length=_MEAN.value, slots=_SLOTS.value)
    make = functools.partial(Stages, cfg, shape, stage, mesh, **options)
    stages = make()
    calls = {
      name: functools.partial(stages.call, name)
      for name in (*(PARTS if stage == 'step' else ()), stage)
    }
    if stages.capacity:
      calls['unpacked'] = functools.partial(make(pack=False).call, stage)
    times = costs.seconds_in_turn(calls, _REPEATS.value)
    low, median, high = np.quantile(times[stage], (0.25, 0.5, 0.75))
    full = None
    if _MEAN.value and stage == 'generate':
      full = full_width_seconds(cfg, shape, mesh)
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
  if full is not None:
    row |= {
      'full_width_seconds_per_token': full,
      'times_full_width': median / generated / full,
    }
  print(json.dumps(row | compared(stages, stage, times)))


if __name__ == '__main__':
  app.run(main)
