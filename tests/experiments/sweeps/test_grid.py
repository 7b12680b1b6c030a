"""A grid from the command line: values between commas, cells, mistakes."""

import pytest

from experiments.sweeps import grid
from experiments.sweeps import runs as sweep_runs


@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('1e-4', ['1e-4']),
    ('1e-4, 3e-4', ['1e-4', '3e-4']),
    ('(1,2),(3,4)', ['(1,2)', '(3,4)']),
    ("{'a': [1, 2], 'b': 3},null", ["{'a': [1, 2], 'b': 3}", 'null']),
    ('Clip(low=1, high=2),Clip(low=3)', ['Clip(low=1, high=2)', 'Clip(low=3)']),
    ('\'a,b\',"c,d"', ["'a,b'", '"c,d"']),
    ("it's,that's", ["it's", "that's"]),
  ],
)
def test_commas_in_brackets_and_quotes_separate_nothing(text, expected):
  assert grid.values(text) == expected


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('1,', 'an empty value'),
    ('', 'an empty value'),
    ('(1,2', r'\( is not closed'),
    ('[1)', r'\) closes nothing'),
    ("'a,b", "' is not closed"),
  ],
)
def test_values_that_cannot_be_read(text, message):
  with pytest.raises(ValueError, match=message):
    grid.values(text)


def test_every_combination_is_a_cell():
  """Methods x rates x seeds; a critic gets its value head; adds are shared."""
  found = grid.settings(
    'configs/worlds/bandit.py',
    'grpo,ppo',
    ['optimizer.learning_rate=1e-4,3e-4'],
    ['method.losses=EntropyBonus(coef=0.01)'],
    seeds=2,
  )
  assert len(found) == 8
  members = sweep_runs.runs(found)
  assert [run.config.seed for run in members] == [0, 1] * 4
  assert [run.config.optimizer.learning_rate for run in members[:4]] == [
    *(1e-4, 1e-4, 3e-4, 3e-4)
  ]
  assert [run.config.model.value_head for run in members] == [False] * 4 + [
    True
  ] * 4
  for run in members:
    assert type(run.config.method.losses[-1]).__name__ == 'EntropyBonus'
    assert 'EntropyBonus' not in run.name
  assert len({run.name for run in members}) == 8


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'sets': ['seed']}, '--set=seed: expected'),
    ({'sets': ['seed=1,2'], 'seeds': 2}, '--seeds=2 or --set=seed=..., not'),
    ({'sets': ['iterations=1', 'iterations=2']}, 'iterations is given twice'),
    ({'sets': ['method=grpo']}, 'method is given twice'),
    ({'seeds': 0}, 'at least 1'),
    ({'method': 'grpo,dapoo'}, "'dapoo'. Did you mean 'dapo'"),
  ],
)
def test_mistakes_are_named(options, message):
  arguments = {'config': 'bandit', 'method': 'grpo', 'sets': [], **options}
  with pytest.raises(ValueError, match=message):
    grid.settings(**arguments)


def test_equal_cells_are_refused():
  """Two spellings of one number."""
  found = grid.settings('bandit', 'grpo', ['iterations=3,3'])
  with pytest.raises(ValueError, match='are the same run'):
    sweep_runs.runs(found)


def test_the_command_prints_its_cells_and_touches_nothing(tmp_path, answers_of):
  """--dry_run, with a cell that is not valid."""
  target = tmp_path / 'runs'
  arguments = (
    f'--workdir={target}',
    '--config=configs/worlds/bandit.py',
    '--set=rollout.group_size=1,8',
    '--seeds=2',
    '--jitted',
    '--dry_run',
  )
  ((code, out, _),) = answers_of(tmp_path, {'sweep': [arguments]})['sweep']
  assert code == 0, out
  *cells, last = out.splitlines()
  assert last == '4 runs, 2 programs' and not target.exists()
  assert 'group_size=1-seed=0' in cells[0] and ': will fail: ' in cells[0]
  assert cells[3].endswith(': 0 of 60 iterations')
