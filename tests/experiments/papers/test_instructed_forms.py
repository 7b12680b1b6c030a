"""Pages and instructions for them."""

import pytest

from experiments.papers.episodes import instructed_forms
from rl_jax.worlds import WebForm

PAGES = [
  {'prompt': 'a3b0s>', 'completion': 'a3b0'},
  {'prompt': 'a1b1s>', 'completion': 'a1b1'},
]


def test_pages_are_full_and_their_instructions_say_so():
  task = WebForm(fields=4)
  for row in instructed_forms.pages(task, 20, 0):
    assert row['prompt'] == row['completion'] + 's>'
    assert row['completion'][::2] == task.names
    assert {*row['prompt']} <= {*task.alphabet}
  assert instructed_forms.pages(task, 3, 0) != instructed_forms.pages(
    task, 3, 1
  )


def test_goals_by_hand():
  """The goal is the page's; what was written may be wrong."""
  rows, right = instructed_forms.instructed(PAGES, ['a3b0', 'a1'], 0)
  assert rows == [
    {'goal': '30', 'instruction': 'a3b0'},
    {'goal': '11', 'instruction': 'a1'},
  ]
  assert right == 0.5
  shifted, right = instructed_forms.instructed(PAGES, ['a3b0', 'a1b1'], 1)
  assert [x['instruction'] for x in shifted] == ['a1b1', 'a3b0']
  assert right == 0.0
  with pytest.raises(ValueError, match='1 instructions, --source 2 pages'):
    instructed_forms.instructed(PAGES, ['a3b0'], 0)
