"""A roofline of one iteration, and the largest rollouts that fit on one card.

Seconds of a stage on each device are at least

  FLOP / peak,  bytes read and written / bandwidth,  bytes sent / interconnect

and the largest of the three is a bound. FLOP are 2 per weight and token
forward, 6 with the backward pass and 8 with rematerialisation, and attention
over visible positions (costs.model_flops).
"""

import dataclasses
from typing import Any

from rl_jax.config import (
  EvaluationConfig,
  ExperimentConfig,
  steps_of_rollout,
)
from rl_jax.learning.update import UpdateConfig
from rl_jax.models import ModelConfig, experts, presets
from rl_jax.planning import abstract_run, costs, memory_plan
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib


@dataclasses.dataclass(frozen=True)
class Card:
  """Peaks of one device, from the maker's data sheet."""

  flops: float  # bfloat16, dense, FLOP/s
  bandwidth: float  # of its memory, bytes/s
  interconnect: float  # one way, bytes/s, between hosts
  memory: float  # bytes


CARDS = {
  'h100': Card(989e12, 3.35e12, 50e9, 80e9),  # SXM, one 400 Gb/s adapter each
  'a100': Card(312e12, 2.04e12, 25e9, 80e9),  # SXM, one 200 Gb/s adapter each
  'rtx4090': Card(165e12, 1.01e12, 32e9, 24e9),  # PCIe 4.0 x16
  'a10g': Card(70e12, 0.6e12, 32e9, 24e9),
}


# Public models.
PUBLIC = tuple(name for name in presets.PRESETS if name != 'tiny')


@dataclasses.dataclass(frozen=True)
class Bound:
  """The least work of one stage on a device."""

  stage: str
  flop: float
  moved: float  # bytes between memory and cores
  sent: float  # bytes to other devices

  def seconds(self, card: Card) -> dict[str, float]:
    """The least seconds, by resource."""
    return {
      'compute': self.flop / card.flops,
      'memory': self.moved / card.bandwidth,
      'interconnect': self.sent / card.interconnect,
    }


def roofline(
  config: ExperimentConfig,
  model: ModelConfig,
  plan: memory_plan.MemoryPlan,
  devices: int,
  sent: dict[str, float],
) -> list[Bound]:
  """Bounds of the stages that run the model; every row has full length.

  Evaluations are together 'evaluate', and count by their share of iterations.

  sent: bytes that a device sends, by stage; other stages are left out.
  """
  rollout, update = config.rollout, config.update
  sampled, spread = _forward_flop(config, model, devices)
  minibatch = update.minibatch_prompts or rollout.num_prompts
  if rows := update.minibatch_rows:
    total = rollout.num_prompts * rollout.group_size
    pieces = total // (update.microbatch_rows or rows)
  else:
    parts = rollout.group_size // (update.microbatch_rows or rollout.group_size)
    pieces = rollout.num_prompts // (update.microbatch_prompts or minibatch)
    pieces *= parts
  steps = steps_of_rollout(config)
  # Responses that the data hold are not sampled.
  drawn = max(0, rollout.generated_prompts - rollout.recorded_prompts)
  # A forward pass reads weights in the compute dtype, gathered over fsdp; the
  # parameters themselves where they are that already.
  weights = plan.sampler_weights or plan.parameters
  passes = int('logp_ref' in config.method.needs()) + int(steps > 1)
  # Several microbatches without scores have one more forward pass.
  unscored = int(steps == 1 and pieces > 1)
  times = 3 + model.remat + unscored
  optimizer = 2 * (plan.parameters + plan.optimizer) + 2 * plan.gradients
  found = {
    'generate': Bound(
      'generate',
      sampled * drawn / rollout.num_prompts,
      _steps(rollout, drawn * rollout.group_size) * (weights + plan.cache / 2),
      sent.get('generate', 0.0),
    ),
    'score': Bound(
      'score',
      passes * spread,
      passes * pieces * weights,
      sent.get('score', 0.0),
    ),
    'update': Bound(
      'update',
      update.epochs * times * spread,
      update.epochs * pieces * (times * weights + 2 * plan.activations)
      + steps * optimizer,
      steps * sent.get('update', 0.0),
    ),
  }
  bounds = [found[stage] for stage in found if stage in sent]
  if any(stage in sent for stage in abstract_run.evaluation_stages(config)):
    bounds.append(_evaluations(config, model, plan, devices, sent))
  return bounds


def _steps(rollout: RolloutConfig, rows: int) -> float:
  """Steps of decoding so many rows of full length, in the slots there are."""
  return rollout.max_response_tokens * _refills(rollout, rows)


def _refills(rollout: RolloutConfig, rows: int) -> float:
  """Returns the times that all slots are taken by rows."""
  if not rows:
    return 0.0
  return max(rows / rollout.slots, 1.0) if rollout.slots else 1.0


def shares(
  config: ExperimentConfig,
  model: ModelConfig,
  bounds: list[Bound],
  card: Card,
  devices: int,
) -> dict[str, float]:
  """Returns how much of what a device does is needed, by stage; 1 is best.

  generate  (weights + filled cache) / bytes that a step reads, by shapes; a
            device has all groups that it samples at a time
  update    6 FLOP a weight and token and those of attention, over the seconds
            of the bound at the peak of the card: what the bound leaves of it
  """
  rollout, sizes = config.rollout, config.mesh.sizes(devices)
  prompts = rollout.num_prompts // rollout.parts
  parts = layout.parts(prompts, 'sampled_rows', sizes)
  shape = costs.Shape(
    -(-prompts // parts),
    rollout.group_size,
    rollout.max_prompt_tokens,
    rollout.max_response_tokens,
  )
  moved = costs.decode_bytes(model, shape)
  whole = dataclasses.replace(shape, num_prompts=rollout.num_prompts)
  needed = config.update.epochs * costs.model_flops(model, whole, 'update')
  found = {}
  for bound in bounds:
    if bound.stage == 'generate' and moved['weights']:
      read = moved['weights'] + moved['cache_read']
      found['generate'] = moved['needed'] / read
    if bound.stage == 'update':
      seconds = max(bound.seconds(card).values())
      found['update'] = needed / devices / (seconds * card.flops)
  return found


def _evaluations(
  config: ExperimentConfig,
  model: ModelConfig,
  plan: memory_plan.MemoryPlan,
  devices: int,
  sent: dict[str, float],
) -> Bound:
  """The work of all evaluation sets that falls on an iteration."""
  weights = plan.sampler_weights or plan.parameters
  axes = config.mesh.sizes(devices)
  flop = moved = exchanged = 0.0
  for stage, (call, times) in abstract_run.evaluated(config).items():
    shape = costs.Shape(
      call.padded(axes) * config.task.traits.players,
      call.group_size,
      config.rollout.max_prompt_tokens,
      call.tokens,
    )
    flop += times * _forward(model, shape) / devices
    rows = call.padded(axes) * call.group_size
    steps = call.tokens * _refills(config.rollout, rows)
    moved += times * steps * (weights + plan.evaluation / 2)
    exchanged += times * sent.get(stage, 0.0)
  for stage, (scored, times) in abstract_run.scored(config).items():
    shape = costs.Shape(
      scored.padded(axes),
      abstract_run.OPTIONS,
      config.rollout.max_prompt_tokens,
      scored.tokens,
    )
    flop += times * _forward(model, shape) / devices
    moved += times * scored.microbatches(axes) * weights
    exchanged += times * sent.get(stage, 0.0)
  every = config.evaluation.every
  return Bound('evaluate', flop / every, moved / every, exchanged / every)


def _forward_flop(
  config: ExperimentConfig, model: ModelConfig, devices: int
) -> tuple[float, float]:
  """FLOP of all tokens on a device: when they are sampled, and in a pass."""
  rollout = config.rollout
  shape = costs.Shape(
    rollout.num_prompts,
    rollout.group_size,
    rollout.max_prompt_tokens,
    rollout.max_response_tokens,
  )
  forward = _forward(model, shape) / devices
  # Devices that sample the same rows as others.
  sizes = config.mesh.sizes(devices)
  shards = sizes['data'] * sizes['fsdp'] * sizes['sequence']
  alike = shards // layout.parts(rollout.num_prompts, 'sampled_rows', sizes)
  # Where responses are split, each of these devices computes all prompts.
  spans = layout.parts(rollout.max_response_tokens, 'tokens', sizes)
  prompts = dataclasses.replace(shape, group_size=0)
  again = _forward(model, prompts) / devices
  return alike * forward, forward + (spans - 1) * again


def _forward(model: ModelConfig, shape: costs.Shape) -> float:
  """FLOP of a forward pass as it is computed: maybe with all experts."""
  if model.num_experts and model.expert_products == experts.ALL:
    model = dataclasses.replace(model, experts_per_token=model.num_experts)
  return costs.model_flops(model, shape, 'generate')


def fitting(
  config: ExperimentConfig,
  memory: float,
  responses: tuple[int, ...],
  names: tuple[str, ...] = PUBLIC,
) -> list[dict[Any, Any]]:
  """Rows {'model', 'trained', T: prompts}: the largest rollout on one card.

  Prompts are a power of two up to 1,024, with the configuration's group size
  and prompt length, one group per microbatch, bfloat16 and rematerialisation;
  None: not even one group fits, or the model has fewer positions.
  """
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig())
  rows = []
  for name in names:
    for trained, rank in (('all', 0), ('LoRA 16', 16)):
      model = dataclasses.replace(
        presets.PRESETS[name],
        compute_dtype='bfloat16',
        expert_products=experts.CHOSEN,
        remat=True,
        lora_rank=rank,
      )
      row: dict[Any, Any] = {'model': name, 'trained': trained}
      for length in responses:
        longest = length + config.rollout.max_prompt_tokens
        row[length] = (
          largest(config, model, mesh, memory, length)
          if longest <= model.max_positions
          else None
        )
      rows.append(row)
  return rows


def largest(config, model, mesh, memory: float, response: int) -> int | None:
  """The most prompts, a power of two, whose plan fits into `memory` bytes."""
  best = None
  for prompts in (2**k for k in range(11)):
    smaller = dataclasses.replace(
      config,
      update=UpdateConfig(microbatch_prompts=1),
      evaluation=EvaluationConfig(),
      rollout=dataclasses.replace(
        config.rollout, num_prompts=prompts, max_response_tokens=response
      ),
    )
    if memory_plan.estimate(smaller, model, mesh).peak > memory:
      break
    best = prompts
  return best
