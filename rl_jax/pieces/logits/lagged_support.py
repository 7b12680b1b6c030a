"""NLPO: only tokens that a lagged copy of the policy finds likely."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import CopyEvery
from rl_jax.pieces.roles import LogitContext, LogitTransform
from rl_jax.types import Array, static


@piece
class LaggedSupport(LogitTransform):
  """pi~(v) = pi(v) 1[v in S] / Z, Z the mass of S under pi.

    S = the likely tokens of the copy, up to and with the one that brings their
        mass above p; the m likeliest; the special tokens; those of `always`
    m = min(min_tokens, ceil(min_percent V / 100)), V the size of the vocabulary

  The copy is the policy of up to `period` iterations ago; ties with the last
  token of S stay. Sampling and every log-prob, the reference's too, are those
  of pi~; no gradient reaches the copy, but Z has one.
  Source: "Is Reinforcement Learning (Not) for Natural Language Processing",
  NLPO; allenai/RL4LMs nlpo.py, maskable/logits_processor.py, whose log-probs
  leave out Z.
  """

  p: float = ranged(0.9, 0.0, 1.0, open_low=True)  # mass
  min_tokens: int = ranged(100, 1, static=True)
  # Of the vocabulary, so that min_tokens does not keep all of a small one.
  min_percent: int = ranged(100, 1, 100, static=True)
  always: tuple[int, ...] = static(default=())  # besides special tokens
  period: int = ranged(5, 1, static=True)  # iterations between copies

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why no token is left out, or an empty text."""
    if self._least(vocab_size) < vocab_size:
      return ''
    return f'min_tokens = {self.min_tokens} keeps all {vocab_size} tokens'

  def with_special_ids(self, ids: tuple[int, ...]) -> 'LaggedSupport':
    """The piece that keeps these tokens, too; see Method.with_special_ids."""
    return self.replace(always=tuple(sorted({*self.always, *ids})))

  def _least(self, vocab_size: int) -> int:
    return min(self.min_tokens, -(-self.min_percent * vocab_size // 100))

  @property
  def policies(self) -> dict[str, Any]:
    """The copy, by the name under which its logits come."""
    return {'lagged': CopyEvery(iterations=self.period)}

  def __call__(self, ctx: LogitContext) -> Array:
    """Logits of pi~, -inf outside S."""
    logits_RV = ctx.logits_RV
    lagged_RV = ctx.others.get('lagged')
    if lagged_RV is None:
      return logits_RV  # evaluation: the policy without its mask
    probs_RV = jax.nn.softmax(lagged_RV, axis=-1)
    falling_RV = jnp.sort(probs_RV, axis=-1, descending=True)
    before_RV = jnp.cumsum(falling_RV, axis=-1) - falling_RV
    V = logits_RV.shape[-1]
    shape = (1,) * (logits_RV.ndim - 1) + (V,)
    few_RV = (jnp.arange(V) < self._least(V)).reshape(shape)
    # A float32 sum of probabilities may pass 1: p = 1 is to keep all.
    inside_RV = (before_RV <= self.p) | few_RV | (self.p >= 1.0)
    kept_RV = jnp.where(inside_RV, falling_RV, jnp.inf)
    allowed_RV = probs_RV >= kept_RV.min(axis=-1, keepdims=True)
    for token in self.always:
      allowed_RV |= (jnp.arange(V) == token).reshape(shape)
    return jnp.where(allowed_RV, logits_RV, -jnp.inf)
