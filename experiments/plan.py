"""Prints what a configuration would cost on many devices, without weights.

  python -m experiments.plan --config=configs/qwen2p5_7b_gsm8k.py --devices=64
  python -m experiments.plan --config=configs/smollm2_gsm8k.py --devices=8
    --mesh=1,8,1 --card=rtx4090

Compiles the stages for emulated CPU devices and prints, per device: planned
memory and what XLA reports, the collectives of an iteration, a roofline for a
named card, and which models fit on a card with 24 GB. XLA has no bfloat16
arithmetic on CPU: temporaries and bytes of collectives are those of float32, up
to twice what an accelerator needs. An all-reduce followed by a slice becomes a
reduce-scatter on accelerators, with half the bytes.
"""

import dataclasses
import math

from absl import app, flags
import jax

from experiments.flags import configuration
from experiments.tables import plan as plan_tables
from rl_jax import config as config_lib
from rl_jax.planning import abstract_run, collectives, memory_plan, roofline
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

_DEVICES = flags.DEFINE_integer('devices', 64, 'Devices to plan for.')
_MESH = flags.DEFINE_list(
  'mesh',
  None,
  'DATA,FSDP,TENSOR[,SEQUENCE]. Default: that of the config, or all fsdp.',
)
_CARD = flags.DEFINE_enum('card', 'h100', list(roofline.CARDS), 'Named peaks.')
_FLOPS = flags.DEFINE_float('flops', None, "FLOP/s instead of the card's.")
_BANDWIDTH = flags.DEFINE_float('bandwidth', None, 'Bytes/s of its memory.')
_LINK = flags.DEFINE_float('interconnect', None, 'Bytes/s to other devices.')
_COMPILE = flags.DEFINE_bool('compile', True, 'Also compile.')
_RESPONSES = flags.DEFINE_list(
  'responses', ['512', '2048', '8192'], 'Response lengths of the last table.'
)
configuration.define_flags()


def mesh_config(config) -> mesh_lib.MeshConfig:
  """The mesh of the flags, else of the configuration, else fsdp over all."""
  if _MESH.value is not None:
    try:
      sizes = [int(text) for text in _MESH.value]
    except ValueError:
      sizes = []
    if len(sizes) not in (3, 4) or math.prod(sizes) != _DEVICES.value:
      raise ValueError(
        f'--mesh={",".join(_MESH.value)}: expected DATA,FSDP,TENSOR[,SEQUENCE] '
        f'whose product is --devices={_DEVICES.value}'
      )
    axes = ('data', 'fsdp', 'tensor', 'sequence')
    return mesh_lib.MeshConfig(**dict(zip(axes, sizes, strict=False)))
  own = config_lib.on_devices(config, _DEVICES.value).mesh
  if math.prod(own.sizes().values()) == _DEVICES.value:
    return own
  return mesh_lib.MeshConfig(data=1, fsdp=_DEVICES.value)


def card() -> roofline.Card:
  """The named card, with peaks replaced by flags that are given."""
  peaks = (_FLOPS, _BANDWIDTH, _LINK)
  given = {x.name: x.value for x in peaks if x.value is not None}
  for name, value in given.items():
    if not 1 <= value <= 1e30:  # nan passes the bounds of a flag
      raise ValueError(f'--{name}={value}: expected 1 to 1e30')
  return dataclasses.replace(roofline.CARDS[_CARD.value], **given)


def response_lengths() -> tuple[int, ...]:
  """The lengths of --responses."""
  texts = _RESPONSES.value
  if not texts or not all(x.isdecimal() and int(x) for x in texts):
    raise ValueError(
      f'--responses={",".join(texts)}: expected numbers of at least 1'
    )
  return tuple(map(int, texts))


def main(argv):
  """Plans one iteration and prints the tables."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  if _DEVICES.value < 1:
    raise ValueError(f'--devices={_DEVICES.value} must be at least 1')
  peaks, responses = card(), response_lengths()
  jax.config.update('jax_platforms', 'cpu')
  jax.config.update('jax_num_cpu_devices', _DEVICES.value)
  config = configuration.from_flags()
  config = dataclasses.replace(config, mesh=mesh_config(config))
  config_lib.validate(config)
  model = policy_lib.planned_model(
    config.model, config.task, Platform.of_process(), config.mesh.sequence
  )
  if model is None:
    raise ValueError(
      f'the shape of {config.model.path} is known only from its weights: use '
      'a configuration that names it in model.config'
    )
  mesh = mesh_lib.make_mesh(config.mesh)
  # Programs for CPU devices compute all experts; the plan is of accelerators.
  chosen = dataclasses.replace(model, expert_products='chosen')
  plan = memory_plan.estimate(config, chosen, mesh)
  compiled, sent = {}, dict.fromkeys(('generate', 'score', 'update'), 0.0)
  if _COMPILE.value:
    lowered = abstract_run.AbstractRun(config, model, mesh).lower()
    compiled = {name: program.compile() for name, program in lowered.items()}
  counted = {
    name: collectives.count(
      program.as_text(),
      devices=_DEVICES.value,
      unknown_trips=max(config.rollout.max_response_tokens - 1, 1),
    )
    for name, program in compiled.items()
  }
  sent |= {name: sum(c.sent for c in found) for name, found in counted.items()}
  bounds = roofline.roofline(config, model, plan, _DEVICES.value, sent)
  rows = roofline.fitting(config, 24e9, responses)
  print(plan_tables.header(config, model))
  print(plan_tables.memory(plan, compiled))
  if compiled:
    print(plan_tables.traffic(counted))
  else:
    print('Not compiled: bytes sent are not counted.\n')
  print(plan_tables.roofline(bounds, peaks, _CARD.value))
  print(plan_tables.fits(rows, responses, config))


if __name__ == '__main__':
  configuration.run(main)
