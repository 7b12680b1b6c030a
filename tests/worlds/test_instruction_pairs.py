"""Instructions and the texts that follow them."""

import pytest

from experiments.papers.worlds import instruction_rows
from rl_jax.worlds import InstructionPairs, instruction_pairs


@pytest.mark.parametrize(
  ('text', 'followed'),
  [
    ('aacdcd', 'BCDEN'),
    ('babcbc', 'C'),
    ('abcabd', 'BE'),
    ('dadada', 'N'),
    ('', 'N'),
  ],
)
def test_rules_by_hand(text, followed):
  found = [x for x in 'BCDEN' if instruction_pairs.follows(x, text)]
  assert ''.join(found) == followed


def test_share_by_hand():
  assert instruction_pairs.followed('BCE', 'abcabd') == pytest.approx(2 / 3)
  assert InstructionPairs().reward(None, 'BE=abcabd') == {'outcome': 1.0}
  for wrong in ('abcabd', '=abcabd', 'XE=abcabd', 'BE'):
    assert InstructionPairs().reward(None, wrong) == {'outcome': 0.0}


@pytest.mark.parametrize(('split', 'shared'), [('validation', 0), ('test', 1)])
def test_pairs_share_instructions_or_the_text(split, shared):
  """The first text follows more, and one of both parts is the same."""
  task = InstructionPairs(intra=0.5)
  for index in range(40):
    example = task.example(split, index)
    first, second = task.recorded(example)
    assert first.reward > second.reward and (first.label, second.label) == (
      1,
      0,
    )
    parts = [x.text.split('=') for x in (first, second)]
    assert parts[0][shared] == parts[1][shared]
    assert parts[0] != parts[1] and len(parts[0][0]) == len(parts[1][0])
    assert set(first.text) <= set(task.alphabet)
    assert first.reward == task.reward(example, first.text)['outcome']


def test_the_share_of_prompt_pairs():
  """0 has pairs of responses only; held-out pairs do not depend on it."""
  none, half = InstructionPairs(), InstructionPairs(intra=0.5)

  def by_prompt(task):
    rows = [task.recorded(task.example('train', n)) for n in range(200)]
    texts = [[x.text.split('=')[1] for x in row] for row in rows]
    return sum(a == b for a, b in texts)

  assert by_prompt(none) == 0 and 70 < by_prompt(half) < 130
  held = none.example('validation', 3)
  assert none.recorded(held) == half.recorded(held)


def test_rows_are_the_pairs_of_the_split():
  rows = instruction_rows.rows('prompts')
  assert len(rows) == 500
  assert rows[0]['chosen'].split('=')[1] == rows[0]['rejected'].split('=')[1]
