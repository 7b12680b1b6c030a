"""Messages as lessons, questions and tables of an annotator."""

import pytest

from experiments.papers.episodes import message_rows

SAMPLES = [
  {
    'turns': [
      {'observation': 'k01d11g20:02->'},
      {'observation': '01-S>'},
      {'observation': '01kT>'},
    ]
  },
  {'turns': [{'observation': 'k01d11g20:02->'}, {'observation': '01-S>'}]},
]


def test_questions_are_the_messages_once():
  assert message_rows.questions(SAMPLES) == [
    {'prompt': 'S01:', 'completion': '1'},
    {'prompt': 'T01:', 'completion': '1'},
  ]


def test_lessons_have_errors_at_a_rate():
  """E0: the same lessons for the same seed; errors turn labels over."""
  right = message_rows.lessons(3, 45, 0.0, 0)
  assert sorted(x['prompt'] for x in right) == sorted(
    x['prompt'] for x in message_rows.every(3)
  )
  assert all(
    row['completion'] == str(int(row['prompt'][0] in 'STO')) for row in right
  )
  wrong = message_rows.lessons(3, 45, 1.0, 0)
  for one, other in zip(right, wrong, strict=True):
    assert one['prompt'] == other['prompt']
    assert {one['completion'], other['completion']} == {'0', '1'}
  assert message_rows.lessons(3, 5, 0.3, 0) == message_rows.lessons(
    3, 5, 0.3, 0
  )
  assert message_rows.lessons(3, 5, 0.3, 0) != message_rows.lessons(
    3, 5, 0.3, 1
  )


def test_tables_by_hand():
  """Letter number * 9 + column * 3 + row, as the pieces count."""
  rows = [
    message_rows.row_of(*x) for x in (('M', '00'), ('S', '12'), ('O', '20'))
  ]
  found, right = message_rows.table(rows, ['0', '1', 'x'], 3)
  assert found == [
    {'message': 0, 'label': 0},
    {'message': 2 * 9 + 5, 'label': 1},
    {'message': 4 * 9 + 6, 'label': 0},  # what cannot be read does not help
  ]
  assert right == pytest.approx(2 / 3)
  with pytest.raises(ValueError, match='3 questions and 1 answers'):
    message_rows.table(rows, ['0'], 3)
