"""The table of the word problems from outcomes of single problems."""

import json

import pytest

from experiments.flags import configuration
from experiments.papers.word_problems import (
  equation_pairs,
  held_out_pairs,
  table,
  tools,
)
from rl_jax.tasks import PreferenceRows


def write(folder, name, greedy, samples=None):
  """A file as `evaluate --out` writes it."""
  rows = {'greedy': greedy, 'responses': ['3 + 4'] * len(greedy)}
  path = folder / name
  path.write_text(json.dumps(rows | ({'samples': samples} if samples else {})))
  return path


def test_excerpt_keeps_a_digit_for_each_problem(tmp_path):
  """A row that was not judged counts as wrong."""
  path = write(
    tmp_path, 'clip_cov_2.svamp.json', [1, None], [[1, 1], [0, None]]
  )
  assert table.excerpt(path) == {
    'problems': 'svamp',
    'policy': 'clip_cov',
    'seed': 2,
    'greedy': '10',
    'samples': 2,
    'right': '20',
  }
  assert 'right' not in table.excerpt(write(tmp_path, 'a_0.b.json', [1.0]))


@pytest.mark.parametrize(
  'name', ['grpo.svamp.json', '_0.a.json', 'grpo_0.json']
)
def test_other_names_are_refused(tmp_path, name):
  """The message says how files are named."""
  with pytest.raises(ValueError, match='POLICY_SEED.SET.json'):
    table.excerpt(write(tmp_path, name, [1]))


def test_new_lines_replace_their_own_alone():
  """The untrained policy comes first."""

  def line(policy, greedy):
    return {
      **{'problems': 'p', 'policy': policy, 'seed': 0},
      'greedy': greedy,
    }

  before, kept = line('untrained', '00'), line('ppo', '01')
  new = line('grpo', '11')
  found = table.with_new([kept, line('grpo', '10')], [new, before])
  assert found == [before, new, kept]


def test_table_by_hand():
  """Two problems, two seeds: changes 1 and 0, 0.5 +- t(1) * 0.5 = 6.353."""
  base = {'problems': 'p', 'policy': 'untrained', 'seed': 0, 'greedy': '01'}
  before = base | {'samples': 4, 'right': '02'}
  after = before | {'policy': 'grpo', 'greedy': '11', 'right': '42'}
  other = after | {'seed': 1, 'right': '00'}
  header, first, second = table.table([before, after, other])
  assert header == table.HEADER
  assert first == ['p, untrained', '1', '50.0%', '-', '25.0%', '-', '50.0%']
  assert second[:5] == [
    'p, grpo',
    '2',
    '100.0%',
    '+50.0% [-585.3%, +685.3%]',
    '37.5%',
  ]
  assert second[-1] == '50.0%'  # any of four: both, then none
  assert table.table([base, base | {'policy': 'x'}])[2][-3:] == ['-'] * 3


def test_expressions_need_one_operation():
  """2 + 2 and 2 * 2 are both 4; numbers may be in another order."""
  assert equation_pairs.expression('2 hats and 2 caps', 4.0) is None
  assert equation_pairs.expression('gave 3 of 9 figs', 6.0) == '9 - 3'


def test_table_of_tools_by_hand():
  """Changes 0, 1 of greedy and 0, 0.5 of samples; +- t(1) * 0.5 or 0.25.

  Two seeds of one policy, of which each has half of it, are averaged.
  """

  def line(form, policy, greedy, right, seed=0):
    own = {'problems': form, 'policy': policy, 'seed': seed, 'samples': 2}
    return own | {'greedy': greedy, 'right': right}

  header, *rows = tools.table(
    [
      line('calculator', 'untrained', '01', '02'),
      line('calculator', 'grpo', '11', '02'),
      line('calculator', 'grpo', '11', '22', seed=1),
      line('calculator', 'sft', '01', '02'),
      line('equation', 'untrained', '00', '01'),
      line('equation', 'grpo', '01', '02'),
    ]
  )
  whole, half = '+50.0% [-585.3%, +685.3%]', '+25.0% [-292.7%, +342.7%]'
  less, none = '-50.0% [-685.3%, +585.3%]', '+0.0% [+0.0%, +0.0%]'
  assert header == tools.HEADER
  assert rows == [
    f'calculator, untrained|1|50.0%|-|{whole}|-|50.0%|-|{half}|-'.split('|'),
    [
      *('calculator, grpo', '2', '100.0%', whole, whole, '-'),
      *('75.0%', half, half, '-'),
    ],
    # No run of sft lacks the tool.
    [
      *('calculator, sft', '1', '50.0%', none, '-', less),
      *('50.0%', none, '-', '-25.0% [-342.7%, +292.7%]'),
    ],
    'equation, untrained|1|0.0%|-|-|-|25.0%|-|-|-'.split('|'),
    f'equation, grpo|1|50.0%|{whole}|-|-|50.0%|{half}|-|-'.split('|'),
  ]


def test_held_out_pairs_are_those_at_the_end_of_the_file():
  """The named number of pairs is held out and judged."""
  sets = held_out_pairs.settings('pairs.jsonl', 8, 'model')
  config = configuration.build('preferences', 'simpo', sets)
  assert config.task == PreferenceRows(path='pairs.jsonl', num_validation=8)
  assert config.evaluation.num_prompts == 8
