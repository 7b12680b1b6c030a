"""Several boxes: overlaps, matching and what is read."""

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import ManyBoxes, many_boxes

EXAMPLE = Example(prompt='', answer='0011,3344', id=0)


@pytest.mark.parametrize(
  ('one', 'other', 'expected'),
  [
    ((0, 0, 1, 1), (0, 0, 1, 1), 1.0),
    # 2 of 6 cells, and 6 of the 6 of both.
    ((0, 0, 1, 1), (1, 0, 2, 1), 1 / 3),
    # No cell of 2, which lie in a row of 4.
    ((0, 0, 0, 0), (3, 0, 3, 0), -0.5),
    # One of 7, in a square of 9.
    ((0, 0, 1, 1), (1, 1, 2, 2), 1 / 7 - 2 / 9),
  ],
)
def test_generalised_overlap_by_hand(one, other, expected):
  """And it is symmetric."""
  for a, b in ((one, other), (other, one)):
    assert many_boxes.generalised_overlap(a, b) == pytest.approx(expected)


def test_boxes_are_matched_whatever_their_order():
  """Invariance; a box too many changes nothing, one too few leaves -2."""
  task = ManyBoxes()
  found = task.reward(EXAMPLE, '0011,3344')
  assert (
    found
    == task.reward(EXAMPLE, '3344,0011')
    == {
      'outcome': 1.0,
      'format': 1.0,
      'giou_0': 1.0,
      'giou_1': 1.0,
      'giou_2': -2.0,
      'num_boxes': 2.0,
    }
  )
  more = task.reward(EXAMPLE, '2222,3344,0011')
  assert (more['outcome'], more['giou_0'], more['giou_1']) == (0.0, 1.0, 1.0)
  one = task.reward(EXAMPLE, '3344')
  assert (one['giou_0'], one['giou_1']) == (-2.0, 1.0)


def test_the_assignment_is_the_best_of_all_pairs():
  """The first box lies nearer to both; the second match is not given up."""
  found = many_boxes.matched(
    [(0, 0, 0, 0), (2, 0, 2, 0)], [(1, 0, 1, 0), (0, 0, 0, 0)]
  )
  assert found == [
    1.0,
    many_boxes.generalised_overlap((2, 0, 2, 0), (1, 0, 1, 0)),
  ]


@pytest.mark.parametrize(
  'response',
  ['', '001', '0011,', '1100', '0015', '0011;3344', ','.join(7 * ['0011'])],
)
def test_what_is_no_boxes_has_no_match(response):
  found = ManyBoxes().reward(EXAMPLE, response)
  assert found['format'] == found['outcome'] == 0.0
  assert found['giou_0'] == found['giou_1'] == -2.0


def test_targets_are_right_and_boxes_do_not_touch():
  task, counts = ManyBoxes(most=3, size=7), set()
  for index in range(40):
    example = task.example('train', index)
    found = task.reward(example, task.target(example))
    assert found['outcome'] == 1.0
    counts.add(found['num_boxes'])
    assert set(example.prompt + example.answer) <= set(task.alphabet)
    letter = example.prompt[-2]
    drawn = example.prompt[:-2].count(letter)
    boxes = [tuple(map(int, x)) for x in example.answer.split(',')]
    assert drawn == sum(map(many_boxes.cells, boxes))
  assert counts == {1.0, 2.0, 3.0}
