"""Pieces whose constants cannot act under a configuration are named."""

import pytest

from rl_jax.method import Method, idle_pieces
from rl_jax.pieces import credit, logits, shaping


@pytest.mark.parametrize(
  'slot, piece, limit, least',
  [
    ('shaping', shaping.OverlongPenalty(), 'max_response_tokens', 16_385),
    ('shaping', shaping.ReferenceSigmoid(), 'max_response_tokens', 301),
    ('credit', credit.LengthAdvantageScale(), 'max_response_tokens', 3900),
    ('logits', logits.LaggedSupport(min_tokens=20), 'vocab_size', 21),
    # 10% of 1 are 1, all of them; of 2 as well, which are not all.
    ('logits', logits.LaggedSupport(min_percent=10), 'vocab_size', 2),
    ('logits', logits.TopK(k=7), 'vocab_size', 8),
  ],
)
def test_a_constant_that_cannot_act_is_named(slot, piece, limit, least):
  """One below the least limit at which it acts, and at it."""
  method = Method(**{slot: (piece,)})
  limits = {'max_response_tokens': 512, 'vocab_size': 100, limit: least - 1}
  (line,) = idle_pieces(method, **limits)
  assert line.startswith(f'method.{slot}.0.{type(piece).__name__}: ')
  assert str(least - 1) in line
  assert not idle_pieces(method, **{**limits, limit: least})


def test_pieces_that_act_are_not_named(toy):
  """GRPO has no such constant; DAPO at 512 tokens has one."""
  limits = {'max_response_tokens': 512, 'vocab_size': 100}
  assert not idle_pieces(toy.get_method('grpo'), **limits)
  (line,) = idle_pieces(toy.get_method('dapo'), **limits)
  assert '= 512' in line and '16384 tokens there is no penalty' in line
