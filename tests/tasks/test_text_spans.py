"""Thoughts and steps by texts, however these are divided into tokens."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import TextSpans
from rl_jax.worlds import Chain, Families

PIECES = (b'', b'', b'<th', b'ink>', b'a', b'</think>b', b'\n', b'\n\nc', b'</')


def spans(task, rows, tokenizer):
  """(think, segments) of rows of ids, padded by 0."""
  size = max(map(len, rows))
  response = np.array([[*row, *[0] * (size - len(row))] for row in rows])
  length = jnp.array([len(row) for row in rows])
  found = task.row_inputs_device(jnp.asarray(response), length, tokenizer)
  return (
    np.asarray(found['think_mask_BT']).astype(int).tolist(),
    np.asarray(found['segment_start_BT']).astype(int).tolist(),
  )


def pieces(*rows, **fields):
  """The spans of rows of PIECES."""
  tokenizer = types.SimpleNamespace(token_bytes=PIECES)
  return spans(TextSpans(Families(), **fields), rows, tokenizer)


def test_texts_over_several_tokens_by_hand():
  """<th|ink>|a|</think>b|a: the thought begins where its mark is whole."""
  think, starts = pieces([2, 3, 4, 5, 4], [4, 4], [3, 4, 4, 4, 4])
  assert think == [[0, 1, 1, 1, 0], [0] * 5, [0] * 5]
  assert starts == [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_a_thought_that_is_not_closed_reaches_to_the_end():
  """Only the first thought counts; an end before it is none."""
  think, _ = pieces([5, 2, 3, 4], [2, 3, 5, 2, 3, 4], [2, 8, 3, 4])
  assert think == [[0, 0, 1, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0] * 6]


def test_an_opened_thought_begins_with_the_response():
  think, _ = pieces([4, 5, 4], [4, 4, 4, 4], opened=True)
  assert think == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_lines_and_steps_by_hand():
  """a|\\n|a|\\n\\nc|a: of lines, and of steps that empty lines divide."""
  row = [4, 6, 4, 7, 4]
  assert pieces(row)[1] == [[1, 0, 1, 0, 1]]
  assert pieces(row, segments=('\n\n',))[1] == [[1, 0, 0, 0, 1]]
  assert pieces([6, 6, 4], segments=('\n\n',))[1] == [[1, 0, 1]]


def test_of_chain_the_spans_are_its_own():
  """E0: the reduction. Padding after the end changes nothing."""
  task, tokenizer = Chain(), CharTokenizer(Chain.alphabet)
  texts = ('<3+4=7;7*2=4>4', '4', '<1+1=2', '1;2>3<4>5', '')
  rows = [[*tokenizer.encode(text), 1] for text in texts]
  marked = TextSpans(task, think=('<', '>'), segments=('<', ';', '>'))
  found = spans(marked, rows, tokenizer)
  expected = spans(task, rows, tokenizer)
  kept = [len(row) - 1 for row in rows]  # Chain takes the end token out
  for ours, theirs in zip(found, expected, strict=True):
    for row in (0, 1, 2):
      assert ours[row][: kept[row]] == theirs[row][: kept[row]]


def test_what_marks_nothing_is_left_to_the_task():
  tokenizer = CharTokenizer(Chain.alphabet)
  ids = [[*tokenizer.encode('<3+4=7>7'), 1]]
  lines = TextSpans(Chain(), think=None, segments=('=',))
  think, starts = spans(lines, ids, tokenizer)
  assert think == spans(Chain(), ids, tokenizer)[0]
  assert starts == [[1, 0, 0, 0, 0, 1, 0, 0, 0]]


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'think': ('', 'a')}, 'TextSpans.think = .* empty'),
    ({'segments': ('a', '')}, 'TextSpans.segments = .* empty'),
    ({'think': None, 'segments': ()}, 'it would mark nothing'),
    ({'think': None, 'opened': True}, 'opened = True needs think'),
  ],
)
def test_bad_fields_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    TextSpans(Families(), **fields)
