"""Prints what a configuration would cost on many devices, without weights.

  python -m experiments.plan --config=configs/qwen2p5_7b_gsm8k.py --devices=64
  python -m experiments.plan --config=configs/smollm2_gsm8k.py --devices=8
    --mesh=1,8,1 --card=rtx4090

  python -m experiments.plan --config=configs/qwen2p5_0p5b_gsm8k.py
    --target=tpu:v5e:2x4
  python -m experiments.plan --config=configs/qwen2p5_7b_gsm8k.py
    --target=gpu:h100:1x8x8 --json=plan.json
  python -m experiments.plan --paper=entropy_mechanism --row=clip_cov
    --target=gpu:h100:1x1x8

With --target the stages of an iteration and of evaluations are compiled by the
compilers of these accelerators, which run on any machine; `make
plan-environment` installs them beside the plain environment, in .venv-aot.
Without it they are compiled for emulated CPU devices. Prints, per device:
planned memory and what the compiler says (code and kernels too), the
collectives of an iteration, a roofline, and which models fit on a card with 24
GB. XLA has no bfloat16 arithmetic on CPU: there temporaries and bytes of
collectives are those of float32, up to twice what an accelerator needs, and an
all-reduce followed by a slice does not become a reduce-scatter, with half the
bytes.

A recipe whose recorded rows are not here is planned with rows that are written
by hand: arrays have the limits of the configuration, whatever rows say.
"""

import atexit
import dataclasses
import json
import math
import os
import tempfile

from absl import app, flags
import jax

from experiments.flags import configuration, outputs
from experiments.flags.fields import once
from experiments.papers import pods, settings, tiny
from experiments.papers import recipe as recipe_lib
from experiments.tables import plan as plan_tables
from rl_jax import config as config_lib
from rl_jax.planning import (
  abstract_run,
  memory_plan,
  programs,
  roofline,
  targets,
)
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.tasks import PreferenceRows

_TARGET = flags.DEFINE_string(
  'target', None, f'Accelerators to compile for: {targets.FORM}.'
)
_JSON = flags.DEFINE_string('json', None, 'File that gets the numbers.')
_DEVICES = flags.DEFINE_integer(
  'devices', None, 'Devices to plan for without --target. Default: 64.'
)
_MESH = flags.DEFINE_list(
  'mesh',
  None,
  'DATA,FSDP,TENSOR[,SEQUENCE]. Default: that of the config, or all fsdp.',
)
_CARD = flags.DEFINE_enum(
  'card',
  None,
  list(roofline.CARDS),
  "Named peaks. Default: the target's, else h100.",
)
_FLOPS = flags.DEFINE_float('flops', None, "FLOP/s instead of the card's.")
_BANDWIDTH = flags.DEFINE_float('bandwidth', None, 'Bytes/s of its memory.')
_LINK = flags.DEFINE_float('interconnect', None, 'Bytes/s to other devices.')
_COMPILE = flags.DEFINE_bool('compile', True, 'Also compile.')
_RESPONSES = flags.DEFINE_list(
  'responses', ['512', '2048', '8192'], 'Response lengths of the last table.'
)
_PAPER = flags.DEFINE_string('paper', '', 'A recipe instead of --config.')
_ROW = flags.DEFINE_string('row', '', 'Of --paper. Default: its first row.')
configuration.define_flags(required=False)


def mesh_config(config, devices: int) -> mesh_lib.MeshConfig:
  """The mesh of the flags, else of the configuration, else fsdp over all."""
  if _MESH.value is not None:
    try:
      sizes = [int(text) for text in _MESH.value]
    except ValueError:
      sizes = []
    if len(sizes) not in (3, 4) or math.prod(sizes) != devices:
      raise ValueError(
        f'--mesh={",".join(_MESH.value)}: expected DATA,FSDP,TENSOR[,SEQUENCE] '
        f'whose product is {_devices_flag()}'
      )
    axes = ('data', 'fsdp', 'tensor', 'sequence')
    return mesh_lib.MeshConfig(**dict(zip(axes, sizes, strict=False)))
  own = config_lib.on_devices(config, devices).mesh
  if math.prod(own.sizes().values()) == devices:
    return own
  return mesh_lib.MeshConfig(data=1, fsdp=devices)


def _devices_flag():
  if _TARGET.value is None:
    return f'--devices={_DEVICES.value or 64}'
  count = targets.Target.parse(_TARGET.value).count
  return f'the {count} devices of --target={_TARGET.value}'


def target() -> targets.Target | None:
  """The accelerators of --target, or None: emulated CPU devices."""
  if _TARGET.value is None:
    return None
  if _DEVICES.value is not None:
    raise ValueError(
      f'--devices={_DEVICES.value} and --target={_TARGET.value}: the target '
      'says how many devices there are'
    )
  return targets.Target.parse(_TARGET.value)


def card(accelerators: targets.Target | None) -> tuple[str, roofline.Card]:
  """Name and peaks of a device, with what flags give instead."""
  peaks = (_FLOPS, _BANDWIDTH, _LINK)
  given = {x.name: x.value for x in peaks if x.value is not None}
  for name, value in given.items():
    if not 1 <= value <= 1e30:  # nan passes the bounds of a flag
      raise ValueError(f'--{name}={value}: expected 1 to 1e30')
  if _CARD.value is None and accelerators is not None:
    name, found = accelerators.chip, accelerators.card
  else:
    name = _CARD.value or 'h100'
    found = roofline.CARDS[name]
  return name, dataclasses.replace(found, **given)


def response_lengths() -> tuple[int, ...]:
  """The lengths of --responses."""
  texts = _RESPONSES.value
  if not texts or not all(x.isdecimal() and int(x) for x in texts):
    raise ValueError(
      f'--responses={",".join(texts)}: expected numbers of at least 1'
    )
  return tuple(map(int, texts))


def chosen_config():
  """The configuration of --config, or of a row of --paper with --set."""
  if not _PAPER.value:
    if flags.FLAGS.config is None or _ROW.value:
      raise ValueError('give --config, or --paper and, if you like, --row')
    return configuration.from_flags()
  if flags.FLAGS.config is not None or flags.FLAGS.method is not None:
    raise ValueError(
      '--paper has its configuration: give no --config, --method'
    )
  config = of_recipe(_PAPER.value, _ROW.value)
  config = configuration.changed(config, once(flags.FLAGS.set))
  return with_rows(config, recipe_lib.load(_PAPER.value))


def of_recipe(paper: str, row: str = '') -> config_lib.ExperimentConfig:
  """A row of a recipe, by default its first, as `experiments.papers.plans`."""
  row = row or recipe_lib.first_row(paper)
  recipe = recipe_lib.load(paper)
  return pods.counted(recipe, recipe_lib.experiment(paper, row))


def with_rows(
  config: config_lib.ExperimentConfig, recipe: recipe_lib.Recipe
) -> config_lib.ExperimentConfig:
  """The configuration of recorded rows, on rows by hand if its file is missing.

  They are repeated, so that they fill a batch of training and one held out.
  """
  _, own = settings.rows_of(config.task)
  wanted = config.rollout.recorded_prompts
  if not (wanted and isinstance(own, PreferenceRows)):
    return config
  if os.path.exists(own.path):
    return config
  folder = tempfile.TemporaryDirectory()
  atexit.register(folder.cleanup)
  file = tiny.write_data(recipe, folder.name)[tiny.source_of(recipe, own)]
  with open(file, encoding='utf-8') as rows:
    text = rows.read()
  times = 1 + (wanted + own.num_validation) // text.count('\n')
  with open(file, 'w', encoding='utf-8') as rows:
    rows.write(text * times)
  print(f'{own.path} is not here: planned with rows written by hand.\n')
  task = settings.with_rows(config.task, path=file)
  return dataclasses.replace(config, task=task)


def _stated():
  """Hours and hardware as the authors of the recipe state them."""
  recipe = recipe_lib.load(_PAPER.value)
  return f'{recipe.hours or "not stated"}; {recipe.hardware or "not stated"}'


def main(argv):
  """Plans one iteration and prints the tables."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  if _DEVICES.value is not None and _DEVICES.value < 1:
    raise ValueError(f'--devices={_DEVICES.value} must be at least 1')
  if _JSON.value:
    outputs.check_file('json', _JSON.value)
  accelerators = target()
  count = accelerators.count if accelerators else _DEVICES.value or 64
  (name, peaks), responses = card(accelerators), response_lengths()
  jax.config.update('jax_platforms', 'cpu')
  if accelerators is None:
    jax.config.update('jax_num_cpu_devices', count)
  config = chosen_config()
  config = dataclasses.replace(config, mesh=mesh_config(config, count))
  config_lib.validate(config)
  devices = accelerators.devices() if accelerators else None
  mesh = mesh_lib.make_mesh(config.mesh, devices)
  model = _model(config, mesh, accelerators)
  planned = model
  if accelerators is None:  # CPU computes all experts; the plan is not of CPU
    planned = dataclasses.replace(model, expert_products='chosen')
  plan = memory_plan.estimate(config, planned, mesh)
  found = _compiled(config, model, mesh) if _COMPILE.value else {}
  measured = abstract_run.evaluation_stages(config)
  stages = ('generate', 'score', 'update', *measured)
  sent = dict.fromkeys(stages, 0.0)
  sent |= {
    stage: sum(c.sent for c in program.collectives)
    for stage, program in found.items()
  }
  bounds = roofline.roofline(config, planned, plan, count, sent)
  print(plan_tables.header(config, model))
  print(plan_tables.memory(plan))
  if found:
    print(plan_tables.programs(found, plan, peaks.memory))
    counted = {stage: x.collectives for stage, x in found.items()}
    print(plan_tables.traffic(counted))
  else:
    print('Not compiled: bytes sent are not counted.\n')
  print(plan_tables.roofline(bounds, peaks, name))
  shares = roofline.shares(config, planned, bounds, peaks, count)
  print(plan_tables.shares(shares))
  if _PAPER.value:
    print(plan_tables.whole_run(config, bounds, peaks, count, _stated()))
  rows = roofline.fitting(config, 24e9, responses)
  print(plan_tables.fits(rows, responses, config))
  if _JSON.value:
    line = plan_tables.numbers(
      _TARGET.value, plan, found, bounds, peaks, shares
    )
    with open(_JSON.value, 'w', encoding='utf-8') as file:
      file.write(json.dumps(line) + '\n')


def _model(config, mesh, accelerators):
  """The model of the policy on these devices, without weights.

  Raises: ValueError if its shape is known only from its weights.
  """
  model = policy_lib.planned_model(
    config.model,
    config.task,
    accelerators.platform if accelerators else Platform.of_mesh(mesh),
    config.mesh.sequence,
  )
  if model is None:
    raise ValueError(
      f'the shape of {config.model.path} is known only from its weights: use '
      'a configuration that names it in model.config'
    )
  return model


def _compiled(config, model, mesh) -> dict[str, programs.Program]:
  """The programs of an iteration and of evaluations, by stage."""
  lowered = abstract_run.AbstractRun(config, model, mesh).lower()
  tokens = dict.fromkeys(lowered, config.rollout.max_response_tokens)
  for stage, (call, _) in abstract_run.evaluated(config).items():
    tokens[stage] = call.tokens
  return programs.all_compiled(
    lowered,
    devices=mesh.devices.size,
    unknown_trips={stage: max(x - 1, 1) for stage, x in tokens.items()},
    platform=model.platform.name,
  )


if __name__ == '__main__':
  configuration.run(main)
