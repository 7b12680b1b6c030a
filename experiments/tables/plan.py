"""The tables of experiments.plan as text."""

import dataclasses
from typing import Any

from rl_jax.config import ExperimentConfig
from rl_jax.models import ModelConfig, spec, specs
from rl_jax.planning import costs
from rl_jax.planning import roofline as roofline_lib
from rl_jax.planning.collectives import Collective
from rl_jax.planning.memory_plan import MemoryPlan
from rl_jax.planning.programs import Program
from rl_jax.runtime import layout

GB = 1e9
PEAKS = ('update', 'generate', 'evaluate', 'peak')


def header(config: ExperimentConfig, model: ModelConfig) -> str:
  """Model, mesh and rollout of the plan."""
  rollout, update, mesh = config.rollout, config.update, config.mesh
  count = spec.count(specs(model))
  sizes, tokens = mesh.sizes(), rollout.max_response_tokens
  spans = layout.parts(tokens, 'tokens', sizes)
  samplers = layout.parts(rollout.num_prompts, 'sampled_rows', sizes)
  active = count - costs.resting_weights(model)
  used = f' ({active / 1e9:.3g} a token)' if active < count else ''
  return (
    f'{count / 1e9:.3g} billion parameters{used}, {model.num_layers} layers, '
    f'{model.param_dtype} weights, {model.compute_dtype} compute, '
    f'remat {model.remat}\n'
    f'mesh data={mesh.data} fsdp={mesh.fsdp} sequence={mesh.sequence} '
    f'tensor={mesh.tensor}; '
    f'{rollout.num_prompts} prompts of {rollout.max_prompt_tokens} x '
    f'{rollout.group_size} samples of {tokens} tokens, '
    f'{update.microbatch_prompts or "all"} prompts a microbatch\n'
    f'score and update: rows split over {sizes["data"] * mesh.fsdp}, the '
    f'{tokens} tokens of a response over {spans}; sampling: rows over '
    f'{samplers}\n'
  )


def memory(plan: MemoryPlan) -> str:
  """The parts of the memory plan, and what the stages need at their peaks."""
  lines = ['Memory on each device by plan, GB']
  for name, value in dataclasses.asdict(plan).items():
    lines.append(f'  {name.replace("_", " "):22}{value / GB:9.3f}')
  for name in PEAKS:
    label = f'peak of {name}' if name != 'peak' else 'needed'
    lines.append(f'  {label:22}{getattr(plan, name) / GB:9.3f}')
  return '\n'.join(lines) + '\n'


# What the plan compares with the memory of a compiled program, by the first
# word of its stage. The plan does not count options: they are scored in
# microbatches of the score pass, which need less than the update.
PLANNED = {'generate': 'generate', 'update': 'update', 'evaluate': 'evaluate'}


def programs(
  compiled: dict[str, Program], plan: MemoryPlan, limit: float
) -> str:
  """A table of the compiler's numbers for each program, with the plan.

  Parameters and optimizer states that a program does not read are missing in
  its memory, and lie beside it on the device.
  """
  lines = [
    f'Programs by their compiler, on each device of {limit / GB:.0f} GB',
    f'  {"stage":20}memory GB  of these temporaries  plan GB   code MB'
    '   compiled in   kernels',
  ]
  for stage, program in compiled.items():
    what = PLANNED.get(stage.split()[0])
    what = None if stage.endswith('options') else what
    planned = getattr(plan, what) / GB if what else None
    kernels = ', '.join(
      f'{count} {name}' for name, count in sorted(program.kernels.items())
    )
    seconds = f'{program.seconds:12.0f} s'
    if program.shared:
      seconds, kernels = f'{"-":>14}', f'the program of {program.shared}'
    lines.append(
      f'  {stage:20}{program.memory / GB:9.3f}'
      f'{program.temporaries / GB:22.3f}'
      f'{"" if planned is None else f"{planned:.3f}":>9}'
      f'{program.code / 1e6:10.1f}{seconds}   {kernels or "none"}'
    )
    if program.by_token:
      kinds = sorted({c.kind for c in program.by_token})
      lines.append(f'  {stage:20}every token waits for {", ".join(kinds)}')
  own = [program for program in compiled.values() if not program.shared]
  lines.append(
    f'  {f"all {len(own)}":20}{"":40}{sum(x.code for x in own) / 1e6:10.1f}'
    f'{sum(x.seconds for x in own):12.0f} s'
  )
  return '\n'.join(lines) + '\n'


def numbers(
  target: str | None,
  plan: MemoryPlan,
  compiled: dict[str, Program],
  bounds: list[roofline_lib.Bound],
  card: roofline_lib.Card,
  shares: dict[str, float],
) -> dict[str, Any]:
  """The same tables as one JSON object, in bytes and seconds."""
  return {
    'target': target,
    'plan': dataclasses.asdict(plan),
    'peaks': {name: getattr(plan, name) for name in PEAKS},
    'programs': {
      stage: dataclasses.asdict(program) for stage, program in compiled.items()
    },
    'seconds': {bound.stage: bound.seconds(card) for bound in bounds},
    'shares': shares,
  }


def traffic(counted: dict[str, list[Collective]]) -> str:
  """Collectives by stage; of an update, those of one optimizer step."""
  lines = [
    'Collectives of each stage, per device',
    f'  {"stage":20}kind                 devices     count   results GB'
    '      sent GB',
  ]
  for stage, found in counted.items():
    for c in found:
      lines.append(
        f'  {stage:20}{c.kind:20}{c.group:8}{c.count:10,}'
        f'{c.bytes / GB:13.3f}{c.sent / GB:13.3f}'
      )
    if not found:
      lines.append(f'  {stage:20}none')
  return '\n'.join(lines) + '\n'


def roofline(
  bounds: list[roofline_lib.Bound], card: roofline_lib.Card, name: str
) -> str:
  """Seconds by resource; the largest bounds the stage."""
  lines = [
    f'Roofline of one iteration, {name}: {card.flops / 1e12:.0f} TFLOP/s, '
    f'{card.bandwidth / 1e12:.2f} TB/s, {card.interconnect / 1e9:.0f} GB/s',
    '  stage          TFLOP   moved GB    sent GB  seconds: compute   memory'
    '     link   bound by',
  ]
  total = 0.0
  for bound in bounds:
    seconds = bound.seconds(card)
    slowest = max(seconds, key=seconds.__getitem__)
    total += seconds[slowest]
    numbers = ''.join(f'{value:9.3f}' for value in seconds.values())
    lines.append(
      f'  {bound.stage:10}{bound.flop / 1e12:10.1f}{bound.moved / GB:11.1f}'
      f'{bound.sent / GB:11.1f}         {numbers}   {slowest}'
    )
  lines.append(f'  at least {total:.2f} seconds an iteration')
  return '\n'.join(lines) + '\n'


def shares(found: dict[str, float]) -> str:
  """Returns which shares of the work of stages are needed, see roofline."""
  texts = {
    'generate': 'of the bytes that decoding reads, needed',
    'update': 'of the peak, model FLOP in the least seconds of an update',
  }
  lines = [f'  {found[x]:6.1%} {texts[x]}' for x in texts if x in found]
  return '\n'.join(['Shares', *lines]) + '\n'


def whole_run(
  config: ExperimentConfig,
  bounds: list[roofline_lib.Bound],
  card: roofline_lib.Card,
  devices: int,
  stated: str,
) -> str:
  """Hours to the last iteration by the roofline, beside those stated."""
  seconds = sum(max(bound.seconds(card).values()) for bound in bounds)
  hours = seconds * config.iterations / 3600
  return (
    f'All {config.iterations} iterations: at least {hours:.1f} hours, '
    f'{hours * devices:.0f} device hours, with evaluations.\n'
    f'As the authors state: {stated}.\n'
  )


def fits(
  rows: list[dict[Any, Any]],
  responses: tuple[int, ...],
  config: ExperimentConfig,
) -> str:
  """Prompts per rollout by model and response length."""
  rollout = config.rollout
  lines = [
    'Most prompts of a rollout on one card of 24 GB (powers of two to 1,024; '
    f'x {rollout.group_size} samples, prompts of {rollout.max_prompt_tokens};'
    ' -: not one)',
    '  model           trained  ' + ''.join(f'T={t:<8}' for t in responses),
  ]
  for row in rows:
    cells = ''.join(f'{str(row[t] or "-"):<10}' for t in responses)
    lines.append(f'  {row["model"]:16}{row["trained"]:9}{cells}')
  return '\n'.join(lines)
