"""Rows of Families, and pairs whose chosen responses drift."""

from experiments.papers.worlds import family_rows
from rl_jax.worlds import Families

TASK = Families(families='crsd', num_train=60)


def test_distances_by_hand():
  """Digits count as often as they occur."""
  for response, expected in (
    ('1 4 3', 0.0),
    ('1 4 4', 1 / 3),
    ('7 8 9', 1.0),
    ('', 0.0),
  ):
    assert family_rows.distance('r 3 4 1=', response) == expected


def test_without_drift_the_right_answer_is_chosen():
  """E0; the rejected one has one wrong digit."""
  for index, pair in enumerate(family_rows.pairs(TASK, 0.0)):
    example = TASK.example('train', index)
    assert pair['prompt'] == example.prompt
    assert pair['chosen'] == example.answer and not pair['wrong']
    assert pair['semantic_distance'] == 0.0
    places = zip(pair['rejected'], example.answer, strict=True)
    assert sum(a != b for a, b in places) == 1


def test_drifted_pairs_are_far():
  """They are as many as asked for; rejected responses do not change."""
  plain, drifted = family_rows.pairs(TASK, 0.0), family_rows.pairs(TASK, 0.3)
  far = [row for row in drifted if row['wrong']]
  assert 8 <= len(far) <= 28
  assert sum(row['semantic_distance'] for row in far) / len(far) > 0.3
  for one, other in zip(plain, drifted, strict=True):
    assert one['rejected'] == other['rejected']
    if not other['wrong']:
      assert one == other
