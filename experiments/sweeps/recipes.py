"""The rows of a recipe as the runs of a sweep, at every scale."""

from collections.abc import Sequence
import os

from experiments.papers import data_files, prompts, tiny
from experiments.papers import recipe as recipe_lib
from experiments.sweeps import runs as sweep_runs

TABLES = ('tiny', 'paper')  # of which a table compares with published numbers
SCALES = ('tiny', 'small', 'paper')


def members(
  paper: str,
  scale: str,
  rows: Sequence[str],
  seeds: int | None,
  workdir: str,
) -> list[sweep_runs.Run]:
  """The runs of rows (none: all); 'tiny' writes their files below workdir.

  Raises: ValueError naming the known rows, or why one is left out.
  """
  count = 1 if seeds is None else seeds
  if count < 1:
    raise ValueError(f'--seeds={count}: expected at least 1')
  recipe = recipe_lib.load(paper)
  if scale == 'small':
    names = rows or recipe.small or ('',)
    chosen = {name: recipe_lib.small_row(paper, name) for name in names}
  else:
    recipe_lib.first_row(paper)
    names = rows or recipe.rows
    chosen = {name: recipe_lib.row_of(paper, name) for name in names}
  if scale == 'tiny':
    folder = os.path.join(workdir, 'tiny')
    return sweep_runs.runs(tiny.sweep(paper, folder, tuple(chosen), count))
  return sweep_runs.runs(
    [
      {**tiny.setting(paper, row), 'seed': seed}
      for row in chosen.values()
      for seed in range(count)
    ]
  )


def check_files(paper: str, runs: Sequence[sweep_runs.Run]) -> None:
  """Checks data, models and chat templates before anything is compiled.

  Raises: FileNotFoundError naming data or a model that is not there; ValueError
    for a tokenizer that writes prompts otherwise than the paper's.
  """
  recipe = recipe_lib.load(paper)
  data_files.check_all(recipe, paper)
  configs = {str(run.config.model.path): run.config for run in runs}
  for path, config in configs.items():
    if not os.path.exists(path):
      raise FileNotFoundError(
        f'{path} is missing: python -m experiments.data --paper={paper} '
        '--weights'
      )
    prompts.check(recipe, config, path)
    prompts.check_lengths(config, path)


def row_name(paper: str, setting: sweep_runs.Setting, scale: str) -> str | None:
  """The name of the row that a setting is of; None: of no row today.

  Of a run at the scale of the paper every change is compared; of one in
  miniature those that are not of its size.
  """
  recipe = recipe_lib.load(paper)
  sizes = tiny.changed(recipe, setting) if scale == 'tiny' else set()
  given = {x: y for x, y in setting.items() if x not in sizes | {'seed'}}
  for name, row in recipe.rows.items():
    own = tiny.setting(paper, row)
    if given == {x: y for x, y in own.items() if x not in sizes}:
      return name
  return None
