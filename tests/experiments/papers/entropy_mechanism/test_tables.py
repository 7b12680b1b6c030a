"""Tables of the entropy mechanism: committed ones, and refused results."""

import pathlib

import pytest

from experiments.papers.entropy_mechanism import tables as entropy_tables
from experiments.tables import cells

ROOT = pathlib.Path(cells.__file__).parents[2]
RESULTS = ROOT / 'experiments/papers/entropy_mechanism/results.jsonl'


def test_committed_tables_are_fresh():
  """`report --update` of the paper would change nothing."""
  lines = entropy_tables.read(str(RESULTS))
  assert not cells.failures(lines)
  text = RESULTS.with_name('README.md').read_text()
  found = entropy_tables.all_tables(lines)
  assert all(cells.BEGIN.format(name) in text for name in found)
  assert cells.with_tables(text, found) == text


def test_differences_are_paired_at_equal_tokens():
  """Both are read at 100 tokens, though one has generated 200."""

  def course(tokens, gain):
    return {
      'tokens': [0, tokens],
      **{name: [0.0, gain] for name in entropy_tables.AT_THE_END},
    }

  courses = {
    entropy_tables.BASELINE: {0: course(100, 0.1), 1: course(100, 0.3)},
    'other': {0: course(200, 0.6), 1: course(200, 1.0)},
  }
  last = entropy_tables.differences(courses)[-1]
  assert last[:3] == ['other', '2', '+0.200 [+0.200, +0.200] *']


def test_nothing_to_show_is_an_error(tmp_path):
  """An empty sweep, and a row whose runs all failed."""
  with pytest.raises(ValueError, match='holds no finished run'):
    entropy_tables.read(str(tmp_path))
  with pytest.raises(ValueError, match='grpo: all runs failed'):
    entropy_tables.table({'grpo': {}}, dict, 'row')
