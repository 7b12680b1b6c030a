"""Times one stage of an iteration, or all of them, on a random model.

  python -m experiments.benchmark --stage=step
  python -m experiments.benchmark --stage=generate --num_prompts=32 --repeats=9
  python -m experiments.benchmark --stage=pairs

Prints one JSON line: median and quartiles of the seconds, tokens/s, model
FLOP/s and bytes/s, their shares of the rates that this process reached on a
plain matrix product and a plain copy, seconds to trace and compile, and peak
memory of the host. program_memory_gb is what the compiler reserves for each
program, device_memory_gb the peak of the whole process on the first device.

FLOP and bytes are those of the model without recomputation (see
rl_jax/planning/costs.py), for rows of full length. bytes_per_second is that of
decoding: seconds of prefill, timed in turn, are subtracted.

--stage=pairs is a DPO step on 32 pairs of data, prompts of 128 tokens and
responses of 64 unless flags say otherwise: the score of the reference, and the
update.

--stage=turns plays episodes of up to 16 turns, 24 tokens of the environment and
8 of the policy each, with prompts of 64; a step of the environment takes 20
microseconds. The keys are explained in benchmarks/turns.py. With --workers=2 it
measures host_share only, with environments in so many processes.

--stage=episodes trains --repeats updates on episodes of 1 to --turns turns,
whose tools sleep for a mean of --call_seconds (--calls: constant, lognormal or
heavy), on policy and in the other --ways (as "arrival K=3, fixed K=1 hedged"),
and simulates the same episodes with the seconds of a step that it has measured,
also in step: benchmarks/episodes.py. 4 x 8 rows, turns of 16 tokens unless
flags say otherwise.

Every row generates --new_tokens tokens. With --mean_length rows end at random
(lengths are geometric), and only seconds and generated tokens are meaningful.
reserved_over_needed is the temporary memory that the compiled rollout reserves,
over that of the keys and values of all generated tokens. Compared in turn with
the stage are then:

  times_full_width  generate: seconds a token, over those of 64 rows that all
                    have full length
  times_equal_lengths  the same, over those of as many rows that all end at the
                    mean length
  times_unpacked    update: seconds over those without packing; rows are packed
                    if they fit in `capacity` places a group, and the peak of
                    memory is that of both
  stage_seconds     step: the stages only, with or without --mean_length
  times_plain       generate with --speculative: seconds over those of plain
                    decoding. Every call draws the same tokens, so that with
                    PreviousResponses() and --group_size=1 all drafts are right:
                    the limit for responses that recur; accepted_length: tokens
                    a forward pass. PromptLookup() never guesses random weights:
                    what drafts cost where they are wrong.
"""

import dataclasses
import functools
import json
import resource
from typing import Any

from absl import app, flags
import jax
import numpy as np

from experiments.benchmarks import episodes, pairs, ratios, timing, turns
from experiments.benchmarks.episodes_simulation import KINDS, Load
from experiments.benchmarks.stages import (
  PRESETS,
  STAGES,
  Options,
  Stages,
  ending_ids,
)
from experiments.flags import configuration, outputs
from rl_jax import overrides
from rl_jax.checks import INT32
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.models import ModelConfig, platform
from rl_jax.planning import costs
from rl_jax.runtime import host_memory
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

_STAGE = flags.DEFINE_enum(
  'stage',
  'step',
  (*STAGES, 'step', pairs.STAGE, turns.STAGE, episodes.STAGE),
  'What to time.',
)
_PRESET = flags.DEFINE_enum('preset', 'small', list(PRESETS), 'Model.')
_count = functools.partial(
  flags.DEFINE_integer, lower_bound=1, upper_bound=INT32
)
_PROMPTS = _count('num_prompts', 8, 'Groups.')
_GROUP = _count('group_size', 8, 'Rows a group.')
_PROMPT = _count('prompt_tokens', 64, 'Tokens of a prompt.')
_NEW = _count('new_tokens', 128, 'Tokens of a response.')
_MEAN = flags.DEFINE_float(
  'mean_length', 0, 'Mean length; 0: no row ends early.', lower_bound=0
)
_REPEATS = _count('repeats', 5, 'Timed calls after a first one.')
_MICROBATCHES = _count(
  'microbatches', None, 'Of an update; default on CPU: one per group and device'
)
_SPECULATIVE = flags.DEFINE_string(
  'speculative', None, 'Drafts, as PreviousResponses(tokens=4).'
)
_SLOTS = _count('slots', None, 'Rows decoded at a time.')
_CACHE = _count(
  'cache_tokens', None, 'Tokens of responses whose keys and values fit.'
)
_WORKERS = flags.DEFINE_integer(
  'workers', 0, 'Processes of the environments of turns.', lower_bound=0
)
_TURNS = _count('turns', 5, 'Turns of the episodes of --stage=episodes.')
_SECONDS = flags.DEFINE_float(
  'call_seconds', 0.5, 'Its mean call.', lower_bound=0.0
)
_CALLS = flags.DEFINE_enum(
  'calls', 'lognormal', KINDS, 'How long its calls are.'
)
_WAYS = flags.DEFINE_list(
  'ways',
  ['fixed K=0', 'fixed K=1'],
  'Of its slots, as "arrival K=3" and "fixed K=1 hedged".',
)
_TRACES = flags.DEFINE_string(
  'traces', None, 'Folder that gets the traces of its runs.'
)
_OUT = flags.DEFINE_string('out', None, 'File that also gets the line.')


def default_microbatches(shape: costs.Shape) -> int:
  """Small microbatches cost nothing on CPU and keep the activations small."""
  groups = shape.num_prompts // jax.device_count()
  return groups if Platform.of_process().is_cpu else 1


def drafts() -> Drafts | None:
  """Returns what --speculative names."""
  text = _SPECULATIVE.value
  if text is None:
    return None
  if _STAGE.value != 'generate':
    raise app.UsageError('--speculative is for --stage=generate')
  if _CACHE.value is not None:
    raise app.UsageError('--cache_tokens is not for --speculative')
  return overrides.parse_piece(text)


def main(argv):
  """Compiles, times and prints one line."""
  del argv
  cfg, stage = (
    platform.resolve(PRESETS[_PRESET.value], platform=Platform.of_process()),
    _STAGE.value,
  )
  if _OUT.value:
    outputs.check_file('out', _OUT.value)
  host_memory.give_back_after_compilations()
  shape = costs.Shape(_PROMPTS.value, _GROUP.value, _PROMPT.value, _NEW.value)
  tokens = shape.rows * (shape.prompt_tokens + shape.new_tokens)
  if tokens > INT32:
    raise app.UsageError(f'{tokens} tokens in a round, more than {INT32}')
  if _WORKERS.value and stage != turns.STAGE:
    raise app.UsageError('--workers is for --stage=turns')
  if stage == pairs.STAGE:
    time_pairs(cfg)
    return
  if stage == turns.STAGE:
    time_turns(cfg)
    return
  if stage == episodes.STAGE:
    time_episodes(cfg)
    return
  try:
    ending_ids(cfg, _MEAN.value)
    ratios.check_groups(shape, stage, _MEAN.value, jax.device_count())
  except ValueError as error:
    raise app.UsageError(str(error)) from None
  time_stage(cfg, shape, stage)


def time_stage(cfg: ModelConfig, shape: costs.Shape, stage: str) -> None:
  """Times a stage of one iteration, and others in turn with it."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=jax.device_count()))
  microbatches = _MICROBATCHES.value or default_microbatches(shape)
  options = Options(
    microbatches, _MEAN.value, _SLOTS.value, _CACHE.value, drafts=drafts()
  )

  def make(shape, **changes):
    return Stages(
      cfg, shape, stage, mesh, dataclasses.replace(options, **changes)
    )

  with jax.set_mesh(mesh):
    rates = timing.rates(cfg.compute_dtype, mesh)
    stages = make(shape)
    calls = ratios.calls_in_turn(stages, make, shape, stage, _MEAN.value)
    # Rollouts of 256 rows and of 64 need different amounts of memory.
    untimed = int('full_width' in calls)
    times = timing.seconds_in_turn(calls, _REPEATS.value, untimed)
  generated = int(stages.full.length_B.sum())
  _write(
    {
      'stage': stage,
      'preset': _PRESET.value,
      'rows': shape.rows,
      **dataclasses.asdict(shape),
      'devices': jax.device_count(),
      'microbatches': microbatches,
      'device': jax.devices()[0].device_kind,
      'jax': jax.__version__,
      'compute_dtype': cfg.compute_dtype,
      'attention': cfg.attention,
      **seconds_and_shares(cfg, shape, stage, times, rates),
      'generated_tokens': generated,
      'generated_tokens_per_second': generated / np.median(times[stage]),
      'compile_seconds': stages.compile_seconds,
      'program_memory_gb': stages.program_memory_gb,
      'device_memory_gb': _device_memory_gb(),
      'peak_memory_gb': _peak_memory_gb(),
      **ratios.compared(stages, shape, stage, times, generated, _MEAN.value),
    }
  )


def check_absent(*others: flags.FlagHolder) -> None:
  """Raises UsageError for flags that the stage does not look at."""
  for flag in others:
    if flag.present:
      raise app.UsageError(f'--{flag.name} is not for --stage={_STAGE.value}')


def time_pairs(cfg: Any) -> None:
  """The line of --stage=pairs."""
  check_absent(_MEAN, _SLOTS, _CACHE, _SPECULATIVE)
  shape = _shape(pairs.SHAPE)
  if shape.group_size != 2 or shape.num_prompts % jax.device_count():
    raise app.UsageError(
      '--stage=pairs needs --group_size=2, and pairs that the devices divide'
    )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=jax.device_count()))
  count = _MICROBATCHES.value or 1
  with jax.set_mesh(mesh):
    flop_rate, _ = timing.rates(cfg.compute_dtype, mesh)
    made = pairs.Pairs(cfg, shape, mesh, count)
    wall, cpu = timing.wall_and_cpu_seconds(made.step, _REPEATS.value)
  low, median, high = np.quantile(wall, (0.25, 0.5, 0.75))
  flops = pairs.model_flops(cfg, shape) / median
  _write(
    {
      'stage': pairs.STAGE,
      'preset': _PRESET.value,
      **dataclasses.asdict(shape),
      'devices': jax.device_count(),
      'microbatches': count,
      'device': jax.devices()[0].device_kind,
      'jax': jax.__version__,
      'compute_dtype': cfg.compute_dtype,
      'seconds_median': median,
      'seconds_quartiles': [low, high],
      'cpu_seconds_median': float(np.median(cpu)),
      'flop_per_second': flops,
      'share_of_matrix_product': flops / flop_rate,
      'pairs_per_second': shape.num_prompts / median,
      'first_call_seconds': made.first_seconds,
      'peak_memory_gb': _peak_memory_gb(),
    }
  )


def time_turns(cfg: Any) -> None:
  """The line of --stage=turns."""
  check_absent(_MEAN, _SLOTS, _CACHE, _SPECULATIVE, _MICROBATCHES)
  shape = _shape(turns.SHAPE)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=jax.device_count()))
  with jax.set_mesh(mesh):
    given = cfg, shape, mesh, _REPEATS.value
    if _WORKERS.value:
      found = turns.host_shares(*given, _WORKERS.value)
    else:
      found = turns.measured(*given)
  _write(
    {
      'stage': turns.STAGE,
      'preset': _PRESET.value,
      **dataclasses.asdict(shape),
      'devices': jax.device_count(),
      'device': jax.devices()[0].device_kind,
      'jax': jax.__version__,
      'compute_dtype': cfg.compute_dtype,
      **found,
      'peak_memory_gb': _peak_memory_gb(),
    }
  )


def time_episodes(cfg: Any) -> None:
  """The line of --stage=episodes; --repeats: its updates."""
  check_absent(_MEAN, _SLOTS, _CACHE, _SPECULATIVE, _MICROBATCHES)
  shape = _shape(costs.Shape(4, 8, episodes.PROMPT, 16))
  load = Load(
    groups=shape.num_prompts,
    group=shape.group_size,
    turns=_TURNS.value,
    tokens=shape.new_tokens,
    spread=0.0,
    observation=episodes.SAID,
    alike=0.0,
  )
  try:
    named = {name: episodes.named(name) for name in _WAYS.value}
  except ValueError as error:
    raise app.UsageError(f'--ways: {error}') from None
  first = episodes.ON_POLICY
  ways = [first, *(named[name] for name in named if name != first.name)]
  found = episodes.measured(
    cfg,
    load,
    _CALLS.value,
    _SECONDS.value,
    _REPEATS.value,
    ways,
    _TRACES.value,
  )
  _write(
    {
      'stage': episodes.STAGE,
      'preset': _PRESET.value,
      **dataclasses.asdict(load),
      'calls': _CALLS.value,
      'call_seconds': _SECONDS.value,
      'updates': _REPEATS.value,
      'device': jax.devices()[0].device_kind,
      'jax': jax.__version__,
      'compute_dtype': cfg.compute_dtype,
      **found,
      'peak_memory_gb': _peak_memory_gb(),
    }
  )


def _shape(default: costs.Shape) -> costs.Shape:
  """The sizes that flags give, and those of the stage."""
  names = [field.name for field in dataclasses.fields(default)]
  given = zip(names, (_PROMPTS, _GROUP, _PROMPT, _NEW), strict=True)
  sizes = {name: flag.value for name, flag in given if flag.present}
  return dataclasses.replace(default, **sizes)


def _write(row: dict[str, Any]) -> None:
  line = json.dumps(row)
  print(line)
  if _OUT.value:
    with open(_OUT.value, 'a', encoding='utf-8') as file:
      file.write(line + '\n')


def seconds_and_shares(cfg, shape, stage, times, rates) -> dict[str, Any]:
  """Seconds of a stage, and its rates over those of a product and a copy."""
  flop_rate, byte_rate = rates
  low, median, high = np.quantile(times[stage], (0.25, 0.5, 0.75))
  flops = costs.model_flops(cfg, shape, stage) / median
  row = {
    'seconds_median': median,
    'seconds_quartiles': [low, high],
    'flop_per_second': flops,
    'share_of_matrix_product': flops / flop_rate,
  }
  if 'prefill' not in times:
    return row
  prefill = np.median(times['prefill'])
  moved = costs.decode_bytes(cfg, shape)
  per_second = moved['needed'] / max(median - prefill, 1e-9)
  return row | {
    'prefill_seconds': prefill,
    'bytes_per_second': per_second,
    'share_of_copy': per_second / byte_rate,
    **{f'bytes_{name}': value for name, value in moved.items()},
  }


def _device_memory_gb() -> float | None:
  """The most that the first device ever held; None where it does not count."""
  stats = jax.local_devices()[0].memory_stats() or {}
  peak = stats.get('peak_bytes_in_use')
  return None if peak is None else peak / 1e9


def _peak_memory_gb() -> float:
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == '__main__':
  configuration.run(main)
