"""Stages of a pipeline: recipes, and the commands that they become."""

import dataclasses
import os
import string

from experiments.flags import configuration
from rl_jax import user_modules

# Of binaries whose results depend on a seed.
_SEED_FLAGS = {
  'train': '--set=seed=',
  **dict.fromkeys(
    (
      'papers.abstention.abstention',
      'papers.decoding.acceptance_head',
      'evaluate',
      'papers.episodes.advice_rows',
      'papers.episodes.instructed_forms',
      'papers.episodes.latent_strategies',
      'papers.episodes.message_rows',
      'papers.worlds.evolved_rows',
      'papers.worlds.policy_cliff',
      'tools.prompt_information',
      'papers.episodes.relabelled_forms',
      'papers.preferences.rejection_pairs',
      'papers.worlds.rubric_rows',
      'select_rows',
      'sft',
      'papers.worlds.step_labels',
      'papers.preferences.step_values',
      'papers.episodes.walk_rows',
    ),
    '--seed=',
  ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
  """One command. In flags {out} is its folder, {NAME} that of stage NAME."""

  name: str
  binary: str = 'train'
  flags: tuple[str, ...]


def load(source: str) -> tuple[Stage, ...]:
  """The stages of a recipe, by name or file."""
  name = source
  if not source.endswith('.py'):
    name = str(configuration.ROOT / 'configs' / 'pipelines' / f'{source}.py')
  if not os.path.exists(name):
    folder = os.path.dirname(name)
    known = (
      sorted(
        x[:-3] for x in os.listdir(folder) if x.endswith('.py') and x[0] != '_'
      )
      if os.path.isdir(folder)
      else []
    )
    raise ValueError(f'--pipeline={source}: no such file; there are {known}')
  found = getattr(user_modules.load(name), 'get_stages', None)
  if not callable(found):
    raise ValueError(f'--pipeline={source} has no function get_stages()')
  stages = found()
  is_stages = isinstance(stages, (tuple, list)) and stages
  if not (is_stages and all(isinstance(x, Stage) for x in stages)):
    raise ValueError(
      f'--pipeline={source}: get_stages() returned {stages!r}: expected Stages '
      'in a tuple, one at least'
    )
  return tuple(stages)


def commands(
  stages: tuple[Stage, ...], workdir: str, seed: int = 0
) -> dict[str, list[str]]:
  """{stage: ['-m', 'experiments.BINARY', flags...]}, folders filled in.

  seed: 100 times it is added to the seed of every stage that has one.

  Raises: ValueError naming a stage with a wrong name, binary or input.
  """
  found, folders = {}, {}
  for stage in stages:
    if not stage.name.isidentifier() or stage.name in (*folders, 'out'):
      raise ValueError(
        f'stage {stage.name!r}: names are identifiers, differ, and are not '
        "'out'"
      )
    file = stage.binary.replace('.', '/') + '.py'
    if not (configuration.ROOT / 'experiments' / file).exists():
      raise ValueError(
        f'stage {stage.name!r}: there is no experiments.{stage.binary}'
      )
    is_tuple = isinstance(stage.flags, (tuple, list))
    if not is_tuple or not all(isinstance(x, str) for x in stage.flags):
      raise ValueError(
        f'stage {stage.name!r}: flags = {stage.flags!r}: expected a tuple of '
        'texts'
      )
    own = os.path.join(workdir, stage.name)
    known = {**folders, 'out': own}
    for flag in stage.flags:
      for field in _fields(stage, flag):
        if field not in known:
          raise ValueError(
            f'stage {stage.name!r}: {{{field}}} in {flag!r} is none of the '
            f'stages before it: {list(folders)}; double braces for a dict'
          )
    arguments = [flag.format(**known) for flag in stage.flags]
    arguments = _seeded(stage.binary, arguments, seed)
    found[stage.name] = ['-m', f'experiments.{stage.binary}', *arguments]
    folders[stage.name] = own
  return found


def _seeded(binary: str, arguments: list[str], seed: int) -> list[str]:
  """Arguments with another seed; the same for seed 0."""
  flag = _SEED_FLAGS.get(binary)
  if not seed or flag is None:
    return arguments
  own = [int(x.removeprefix(flag)) for x in arguments if x.startswith(flag)]
  others = [x for x in arguments if not x.startswith(flag)]
  return [*others, f'{flag}{100 * seed + sum(own)}']


def _fields(stage, flag):
  """Names in braces."""
  try:
    parts = list(string.Formatter().parse(flag))
  except ValueError as error:
    raise ValueError(
      f'stage {stage.name!r}: {flag!r}: {error}; double braces for a dict'
    ) from None
  return [field for _, field, _, _ in parts if field is not None]
