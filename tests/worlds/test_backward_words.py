"""Words backwards, with part marks."""

import pytest

from rl_jax.tasks import Example
from rl_jax.worlds import BackwardWords


@pytest.mark.parametrize(
  'response, outcome, places',
  [
    ('cba', 1.0, 1.0),
    ('cbb', 0.0, 2 / 3),
    ('cbaa', 0.0, 3 / 4),
    ('c', 0.0, 1 / 3),
    ('abc', 0.0, 1 / 3),
    ('', 0.0, 0.0),
  ],
)
def test_part_marks_by_hand(response, outcome, places):
  """For 'abc': letters in place over the longer text."""
  example = Example(prompt='abc=', answer='cba', id=0)
  found = BackwardWords(length=3).reward(example, response)
  assert found == {'outcome': outcome, 'places': places}


def test_targets_are_right_and_splits_apart():
  task, words = BackwardWords(num_train=50), {}
  for split in ('train', 'validation', 'test'):
    examples = [task.example(split, i) for i in range(50)]
    assert examples == [task.example(split, i) for i in range(50)]
    words[split] = {example.prompt for example in examples}
    for example in examples:
      assert len(example.answer) == 4
      assert set(example.prompt) <= set(task.alphabet)
      assert example.prompt[:-1] == task.target(example)[::-1]
      assert task.reward(example, task.target(example))['outcome'] == 1.0
  assert not words['train'] & (words['validation'] | words['test'])


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='BackwardWords.length = 0'):
    BackwardWords(length=0)
  with pytest.raises(IndexError, match='index 50'):
    BackwardWords(num_train=50).example('train', 50)
