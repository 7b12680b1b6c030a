"""Recipes in miniature, in two files that two processes can share."""

import functools
import shutil

import pytest

from experiments.papers import recipe as recipe_lib
from experiments.papers import settings, tiny
from experiments.sweeps import recipes
from experiments.sweeps import runs as sweep_runs
from experiments.tables import published
import rl_jax

# The row of a recipe that the quick tests run: the first one, or one without a
# critic, whose programs take half as long to compile.
CHEAPER = {
  'gigpo': 'gigpo_1p5b',
  'ragen': 'gigpo_sokoban',
  'search_r1': 'grpo_3b',
}


@functools.cache
def _quick_rows():
  """(paper, row) of each recipe; answers of groups and all others apart."""
  found = {'answering_row': [], 'other_row': []}
  for paper in recipe_lib.names():
    if not recipe_lib.load(paper).rows:
      continue
    row = CHEAPER.get(paper) or recipe_lib.first_row(paper)
    config = recipe_lib.experiment(paper, row)
    rollout = config.rollout
    other = rollout.turns or rollout.recorded_prompts or config.model.value_head
    found['other_row' if other else 'answering_row'].append((paper, row))
  return found


def pytest_generate_tests(metafunc):
  """Each quick row is the parameter of one test."""
  for name, rows in _quick_rows().items():
    if name in metafunc.fixturenames:
      metafunc.parametrize(name, rows, ids='-'.join)


@pytest.fixture(scope='session')
def shared_model(tmp_path_factory):
  """A tiny Qwen2.5, whose programs recipes share."""
  folder = tmp_path_factory.mktemp('shared') / 'model'
  tiny.write_model(settings.sizes('Qwen/Qwen2.5-0.5B'), str(folder))
  return folder


@pytest.fixture(scope='session')
def run_in_miniature():
  """(paper, row, folder, **changes): the run, whose numbers the table has."""
  return _run


@pytest.fixture
def run_quickly(shared_model, tmp_path):
  """(paper, row): the run with as few programs of its own as may be.

  The model is shared, samples of evaluations are drawn at temperature 1, and a
  rollout has one optimizer step, as a second one is another program.
  """

  def run(paper, row):
    shutil.copytree(shared_model, tmp_path / 'tiny' / 'model')
    changes = {
      'update.minibatch_prompts': 'null',
      'update.minibatch_rows': 'null',
    }
    sets = recipe_lib.experiment(paper, row).evaluation.sets
    for i, one in enumerate(sets):
      if one.num_samples:
        changes[f'evaluation.sets.{i}.temperature'] = 1.0
        changes[f'evaluation.sets.{i}.top_p'] = 'null'
    _run(paper, row, tmp_path, **changes)

  return run


def _run(paper, row, folder, **changes):
  """Two iterations and the evaluation; the table has their numbers."""
  (run,) = recipes.members(paper, 'tiny', [row], 1, str(folder))
  known = {
    name: x
    for name, x in changes.items()
    if name in run.setting or name.startswith('evaluation.')
  }
  run = sweep_runs.Run({**run.setting, **known})
  sweep_runs.execute(run, str(folder))
  lines = sweep_runs.results(str(folder))
  found = published.cells(paper, lines, 'tiny')
  (ours,) = [x for x in found if x[:2] == [row, 'ours']]
  recipe = recipe_lib.load(paper)
  numbers = dict(zip(found[0], ours, strict=True))
  measured = (*recipe.evaluation, *recipe.played)
  columns = () if recipe.evaluated else measured
  for column in columns:
    assert 0.0 <= float(numbers[column].split()[0]) <= 100.0
  if paper == 'dapo':  # the same protocol on a policy, not trained
    again, _ = rl_jax.evaluate(f'{folder}/{run.name}', run.config)
    for column in recipe.evaluation:
      name = f'{column}/{settings.accuracy(2)}'
      if name in again:
        assert 0.0 <= again[name] <= 1.0
    assert f'average/{settings.AVERAGE}' in again
  # As results of the paper's scale they do not count.
  assert published.cells(paper, lines) == published.cells(paper, [])
  last = lines[0]['last']
  assert last.get('rollout/reward_errors', 0) == 0  # of samples
  for column in columns:
    assert last[f'evaluation/{column}/reward_errors'] == 0
