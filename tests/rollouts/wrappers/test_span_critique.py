"""Spans of characters become scores of tokens."""

import pytest

from experiments.flags import configuration
from rl_jax.pieces.piece import CheckContext
from rl_jax.records import metrics
from rl_jax.rollouts.wrappers import span_critique
from rl_jax.rollouts.wrappers.span_critique import SpanCritique
from rl_jax.runs.loop import Trainer
from rl_jax.worlds import Arithmetic
from tests.rollouts.wrappers.test_rubric_scaffold import SMALL


def test_spans_that_overlap_are_one_with_the_lowest_score():
  """[0, 5] at -1 and [3, 8] at 0 are [0, 8] at -1; neighbours stay apart."""
  found = span_critique.merged([(3, 8, 0.0), (0, 5, -1.0)])
  assert found == [(0, 8, -1.0)]
  apart = [(0, 3, 1.0), (3, 5, -1.0)]
  assert span_critique.merged(apart[::-1]) == apart


def test_order_of_spans_changes_nothing():
  spans = [(0, 2, 1.0), (1, 4, 0.0), (6, 7, -1.0), (3, 5, 1.0)]
  assert span_critique.merged(spans) == span_critique.merged(spans[::-1])
  assert span_critique.merged(spans) == [(0, 5, 0.0), (6, 7, -1.0)]


def test_tokens_by_hand():
  """Tokens of 2, 3 and 1 bytes, an end token of none, a span in two of them."""
  found = span_critique.token_scores([2, 3, 1, 0], [(1, 4, -1.0), (5, 6, 1.0)])
  assert found == [-1.0, -1.0, 1.0, 0.0]
  assert span_critique.token_scores([1, 1], []) == [0.0, 0.0]


def test_characters_of_several_bytes():
  """é has two bytes, so that the span after it begins at 2."""
  assert span_critique.in_bytes('éa', [(1, 2, 1.0)]) == [(2, 3, 1.0)]


def test_a_task_without_spans_is_refused():
  with pytest.raises(ValueError, match='Arithmetic has no method `spans`'):
    SpanCritique().check(CheckContext(task=Arithmetic()))


def test_a_run_trains_on_spans(tmp_path):
  """Samples are those of a run with the scalar reward; what is trained is not.

  The second iteration has other samples, as the first update was another one.
  """
  sets = (*SMALL, 'iterations=2', 'model.value_head=True')

  def responses(name, method):
    config = configuration.build('criticised_families', method, sets)
    Trainer(config, str(tmp_path / name)).run()
    lines = metrics.read_jsonl(str(tmp_path / name / metrics.ROLLOUTS))
    return [line['response'] for line in lines]

  spans, plain = (
    responses('spans', 'text2grad'),
    responses('plain', 'text2grad@scalar'),
  )
  half = len(spans) // 2
  assert spans[:half] == plain[:half]
  row = metrics.read_jsonl(str(tmp_path / 'spans' / metrics.METRICS))[-1]
  assert row['train/grad_norm'] > 0
