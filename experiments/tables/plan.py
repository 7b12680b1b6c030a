"""The tables of experiments.plan as text."""

import dataclasses
from typing import Any

from rl_jax.config import ExperimentConfig
from rl_jax.models import ModelConfig, spec, specs
from rl_jax.planning import costs
from rl_jax.planning import roofline as roofline_lib
from rl_jax.planning.collectives import Collective
from rl_jax.planning.memory_plan import MemoryPlan
from rl_jax.runtime import layout

GB = 1e9


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


def memory(plan: MemoryPlan, compiled: dict[str, Any]) -> str:
  """The memory plan, and XLA's numbers for compiled programs."""
  lines = ['Memory on each device, GB']
  for name, value in dataclasses.asdict(plan).items():
    lines.append(f'  {name.replace("_", " "):22}{value / GB:9.3f}')
  for name in ('update', 'generate', 'evaluate', 'peak'):
    label = f'peak of {name}' if name != 'peak' else 'needed'
    lines.append(f'  {label:22}{getattr(plan, name) / GB:9.3f}')
  for name, program in compiled.items():
    stats = program.memory_analysis()
    results = stats.output_size_in_bytes - stats.alias_size_in_bytes
    lines.append(
      f'  XLA, {name}: arguments {stats.argument_size_in_bytes / GB:.3f}, '
      f'new results {results / GB:.3f}, temporaries '
      f'{stats.temp_size_in_bytes / GB:.3f}'
    )
  return '\n'.join(lines) + '\n'


def traffic(counted: dict[str, list[Collective]]) -> str:
  """Collectives by stage; of an update, those of one optimizer step."""
  lines = [
    'Collectives of each stage, per device',
    '  stage       kind                 devices     count   results GB'
    '      sent GB',
  ]
  for stage, found in counted.items():
    for c in found:
      lines.append(
        f'  {stage:12}{c.kind:20}{c.group:8}{c.count:10,}'
        f'{c.bytes / GB:13.3f}{c.sent / GB:13.3f}'
      )
    if not found:
      lines.append(f'  {stage:12}none')
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
