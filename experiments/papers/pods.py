"""Memory and time of the rows of recipes on the pods that they name."""

from collections.abc import Iterator, Mapping
import dataclasses
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
from typing import Any

from experiments.flags import configuration
from experiments.papers import data_files
from experiments.papers import recipe as recipe_lib
from rl_jax import config as config_lib
from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.planning import abstract_run, memory_plan, roofline, targets
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib

_MOST = 1024  # devices that are searched for the smallest number
_SLOTS = (128, 64, 32, 16)  # rows that a device decodes at a time


def path_of(paper: str) -> str:
  """The file of the plans of a recipe."""
  folder = configuration.ROOT / 'experiments' / 'papers' / paper
  return str(folder / 'plan.jsonl')


def read(paper: str) -> list[dict[str, Any]]:
  """The plans of a recipe, one for each row and pod."""
  path = path_of(paper)
  if not os.path.exists(path):
    return []
  with open(path, encoding='utf-8') as file:
    return [json.loads(line) for line in file]


def write(paper: str, lines: list[dict[str, Any]]) -> None:
  """Replaces the plans of a recipe; one that trains nothing has no file."""
  if not lines:
    return
  with data_files.replaced(path_of(paper)) as file:
    for line in lines:
      file.write((json.dumps(line, sort_keys=True) + '\n').encode())


def on(config: ExperimentConfig, devices: int) -> ExperimentConfig:
  """The configuration on so many devices: its own mesh if that fits, or fsdp.

  Raises: ValueError if the rows cannot be split over them.
  """
  mesh = config.mesh
  if math.prod(mesh.sizes(devices).values()) != devices:
    mesh = mesh_lib.MeshConfig(data=1, fsdp=devices)
  found = dataclasses.replace(config, mesh=mesh)
  config_lib.validate(found)
  return found


def shapes(config: ExperimentConfig) -> str:
  """A short digest that rows share whose programs have the same shapes.

  A new field with a default, of any of the classes, leaves it as it is.
  """
  rollout, model = config.rollout, config.model
  described = (
    *(model.config, model.compute_dtype, model.remat, model.lora_rank),
    *(model.value_head, model.critic, rollout.num_prompts, rollout.group_size),
    *(rollout.max_prompt_tokens, rollout.max_response_tokens),
    *(rollout.round_prompts, config.update, config.mesh),
    sorted(map(str, config.method.needs())),
    type(config.method.rollout).__name__,
  )
  return serialization.digest(described)


def planned(config: ExperimentConfig, target: targets.Target) -> dict[str, Any]:
  """Memory and time of a configuration on a pod, by arithmetic.

  Keys: limit and peaks, bytes of a device; seconds of an iteration and hours of
  all, at least, where every response has full length, without what devices
  send to each other. 'error' instead if the
  rows cannot be split over the devices.
  """
  try:
    placed = on(config, target.count)
  except ValueError as error:
    return {'error': str(error)}
  model = policy_lib.planned_model(
    placed.model, placed.task, target.platform, placed.mesh.sequence
  )
  assert model is not None
  mesh = mesh_lib.abstract_mesh(placed.mesh)
  plan = memory_plan.estimate(placed, model, mesh)
  measured = abstract_run.evaluation_stages(placed)
  stages = ('generate', 'score', 'update', *measured)
  sent = dict.fromkeys(stages, 0.0)
  bounds = roofline.roofline(placed, model, plan, target.count, sent)
  seconds = {x.stage: max(x.seconds(target.card).values()) for x in bounds}
  return {
    'devices': target.count,
    'limit': target.card.memory,
    'peaks': {
      name: getattr(plan, name) for name in ('update', 'generate', 'evaluate')
    },
    'needed': plan.peak,
    'seconds': seconds,
    'hours': sum(seconds.values()) * placed.iterations / 3600,
    'shapes': shapes(placed),
  }


def placements(
  config: ExperimentConfig, devices: int
) -> Iterator[tuple[str, ...]]:
  """Settings that change memory and speed only, fastest first."""
  by_rows = config.update.minibatch_rows is not None
  for tensor in (1, 2, 4, 8):
    if devices % tensor:
      continue
    shards = devices // tensor
    mesh = ('mesh.data=1', f'mesh.fsdp={shards}', f'mesh.tensor={tensor}')
    groups = f'update.microbatch_prompts={shards}'
    rows = f'update.microbatch_rows={shards if by_rows else 1}'
    for slots in (None, *_SLOTS):
      own = mesh + (f'rollout.slots={slots and slots * shards}',)
      yield from (own, (*own, groups), (*own, groups, rows))


def smallest(
  config: ExperimentConfig, target: targets.Target
) -> dict[str, Any] | None:
  """The fewest devices of that kind, a power of two, on which the plan fits.

  Returns `devices` and, in `set`, the settings with which it fits into 90% of
  their memory.
  """
  count = 1
  while count <= _MOST:
    slice_of = dataclasses.replace(target, shape=(1, 1, count))
    for texts in placements(config, count):
      try:
        placed = configuration.changed(config, texts)
      except ValueError:
        continue
      found = planned(placed, slice_of)
      if 'error' not in found and found['needed'] <= 0.9 * found['limit']:
        return {'devices': count, 'set': list(texts)}
    count *= 2
  return None


def counted(
  recipe: recipe_lib.Recipe, config: ExperimentConfig
) -> ExperimentConfig:
  """The configuration whose evaluations have about the right sizes.

  A set whose file nobody has counted would have as many rows as a set may have.
  """
  sets = tuple(
    dataclasses.replace(
      one, limit=one.limit or recipe.evaluation[one.name].about
    )
    for one in config.evaluation.sets
  )
  evaluation = dataclasses.replace(config.evaluation, sets=sets)
  return dataclasses.replace(config, evaluation=evaluation)


def lines_of(
  paper: str, known: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
  """The plans of all rows and pods; what was compiled for the shapes stays."""
  recipe = recipe_lib.load(paper)
  searched: dict[tuple[str, str], dict[str, Any] | None] = {}
  compiled = {
    (line['row'], line['target'], line['shapes']): line['compiled']
    for line in known
    if 'compiled' in line
  }
  for row in recipe.rows:
    config = counted(recipe, recipe_lib.experiment(paper, row))
    for pod in recipe.rows[row].pods or recipe.pods:
      target = targets.Target.parse(pod)
      line = {'row': row, 'target': pod, **planned(config, target)}
      alike = (shapes(config), target.chip)
      if alike not in searched:
        searched[alike] = smallest(config, target)
      line['smallest'] = searched[alike]
      key = (row, pod, line.get('shapes'))
      yield line | ({'compiled': compiled[key]} if key in compiled else {})


def compiled_for(paper: str, row: str, target: str) -> dict[str, Any]:
  """Compiles the programs of a row for a pod: what its compiler says, by stage.

  Raises: RuntimeError with the end of what `experiments.plan` printed.
  """
  with tempfile.TemporaryDirectory() as folder:
    out = os.path.join(folder, 'plan.json')
    words = [f'--paper={paper}', f'--row={row}', f'--target={target}']
    done = subprocess.run(
      [sys.executable, '-m', 'experiments.plan', *words, f'--json={out}'],
      cwd=configuration.ROOT,
      capture_output=True,
      text=True,
    )
    if done.returncode:
      raise RuntimeError(done.stderr[-2000:])
    with open(out, encoding='utf-8') as file:
      found = json.load(file)
  return {
    'programs': {
      stage: {
        'memory': program['memory'],
        'temporaries': program['temporaries'],
        'compile_seconds': round(program['seconds']),
      }
      for stage, program in found['programs'].items()
    },
    'seconds': {
      stage: max(bounds.values()) for stage, bounds in found['seconds'].items()
    },
    'commit': _commit(),
    'compiler': _compiler(target),
  }


def _commit():
  done = subprocess.run(
    ['git', 'rev-parse', '--short=8', 'HEAD'],
    cwd=configuration.ROOT,
    capture_output=True,
    text=True,
  )
  return done.stdout.strip()


def _compiler(target):
  """Versions of jax and of what compiles for the target."""
  plugin = 'libtpu' if target.startswith('tpu') else 'jax-cuda13-plugin'
  return ', '.join(
    f'{name} {importlib.metadata.version(name)}' for name in ('jax', plugin)
  )


def place_of(lines: list[dict[str, Any]], row: str, target: str) -> int:
  """The place of a row's plan.

  Raises: ValueError naming what there is.
  """
  known: Mapping[tuple[str, str], int] = {
    (line['row'], line['target']): i for i, line in enumerate(lines)
  }
  if (row, target) not in known:
    raise ValueError(
      f'--row={row} --target={target}: expected one of {sorted(known)}'
    )
  return known[row, target]
