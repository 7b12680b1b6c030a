"""Rounds of a pipeline."""

import pytest

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage, commands

START = (
  Stage(name='solver_0', flags=('--set=seed=0',)),
  Stage(name='pool', binary='select_rows', flags=('--out={out}.jsonl',)),
)
FIRST = {'solver': 'solver_0'}
BODY = (
  Stage(name='pool', binary='select_rows', flags=('--data={pool}.jsonl',)),
  Stage(
    name='solver',
    flags=(
      '--set=model.path={solver}',
      "--set=task=X(path='{pool}.jsonl', a={{'b': 1}}, digits={number})",
      '--workdir={out}',
    ),
  ),
)


def test_by_hand():
  """Each stage reads the last of a name, of this round or the one before."""
  stages = unrolled(START, BODY, 2, FIRST)
  assert [stage.name for stage in stages] == [
    *('solver_0', 'pool'),
    *('pool_1', 'solver_1'),
    *('pool_2', 'solver_2'),
  ]
  assert stages[2].flags == ('--data={pool}.jsonl',)
  assert stages[4].flags == ('--data={pool_1}.jsonl',)
  assert stages[3].flags[0] == '--set=model.path={solver_0}'
  assert stages[5].flags == (
    '--set=model.path={solver_1}',
    "--set=task=X(path='{pool_2}.jsonl', a={{'b': 1}}, digits=2)",
    '--workdir={out}',
  )
  (*_, last) = commands(stages, 'w')['solver_2']
  assert last == '--workdir=w/solver_2'


def test_no_rounds_are_the_start():
  assert unrolled(START, BODY, 0) == START


def test_earlier_rounds_do_not_change_with_their_number():
  assert unrolled(START, BODY, 3, FIRST)[:6] == unrolled(START, BODY, 2, FIRST)


@pytest.mark.parametrize('names', [('a', 'a'), ('a', 'number')])
def test_wrong_names_are_refused(names):
  body = [Stage(name=name, flags=()) for name in names]
  with pytest.raises(ValueError, match='stages of a round are called'):
    unrolled(START, body, 1)


def test_an_unknown_field_is_named_by_the_commands():
  body = [Stage(name='a', flags=('--set=model.path={judge}',))]
  with pytest.raises(ValueError, match='judge'):
    commands(unrolled(START, body, 1), 'w')
