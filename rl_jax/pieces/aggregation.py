"""Aggregations of a [B, T] loss to a scalar: a weight for every token.

Each rule gives weights_BT, and the scalar is sum(weights * loss). The weight of
a row is a factor of the weights; denominators count rows, turns and tokens,
without rows that have weight 0 or no kept token. They are those of the whole
minibatch, never of a microbatch, and never depend on the padded width.

Source: verl core_algos.py (agg_loss) and trl grpo_trainer.py.
"""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.pieces.ops.segments import segment_means, turn_starts
from rl_jax.pieces.ops.sequences import live_rows
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Aggregation, AggregationContext
from rl_jax.types import Array


@piece
class TokenMean(Aggregation):
  """Mean over all tokens: sum(loss) / tokens. Long rows count more (DAPO)."""

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, tokens_B = live_rows(mask_BT, weight_B)
    return mask_BT * safe_divide(weight_B, (live_B * tokens_B).sum())[:, None]


@piece
class SeqMeanTokenMean(Aggregation):
  """Mean over rows of the mean over a row's tokens (original GRPO)."""

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, tokens_B = live_rows(mask_BT, weight_B)
    row_B = safe_divide(live_B * weight_B, tokens_B * live_B.sum())
    return mask_BT * row_B[:, None]


@piece
class SeqMeanTokenSum(Aggregation):
  """Mean over rows of the sum over a row's tokens: the policy gradient."""

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, _ = live_rows(mask_BT, weight_B)
    return mask_BT * safe_divide(weight_B, live_B.sum())[:, None]


@piece
class SeqMeanTokenSumNorm(Aggregation):
  """SeqMeanTokenSum divided by a constant length (Dr. GRPO).

  verl of early 2026 did not divide by the number of rows.
  """

  # Tokens; usually the limit on response tokens.
  length: float = ranged(low=0.0, open_low=True)

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, _ = live_rows(mask_BT, weight_B)
    row_B = safe_divide(weight_B, live_B.sum() * self.length)
    return mask_BT * row_B[:, None]


@piece
class GroupTokenMean(Aggregation):
  """Mean over groups of the mean over a group's tokens: prompts count alike."""

  by_group = True

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, tokens_B = live_rows(mask_BT, weight_B)
    tokens_N = by_group(live_B * tokens_B, ctx.group_size).sum(1)
    groups = (tokens_N > 0).sum().astype(jnp.float32)
    row_B = safe_divide(weight_B, jnp.repeat(tokens_N, ctx.group_size) * groups)
    return mask_BT * row_B[:, None]


@piece
class TurnMean(Aggregation):
  """Mean over turns of the mean over a turn's tokens: turns count alike.

    weight of a token = weight_B / (tokens of its turn x turns of live rows)

  Without turn_BT every run of trained tokens is a turn, so that a row of one
  response counts as in SeqMeanTokenMean. The mean over a row's tokens instead
  makes the tokens of a turn weigh more the shorter the row's turns are.
  Source: this code.
  """

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, _ = live_rows(mask_BT, weight_B)
    start_BT = turn_starts(mask_BT, ctx.turn_BT)
    _, tokens_BK, index_BT = segment_means(mask_BT, start_BT, mask_BT)
    tokens_BT = jnp.take_along_axis(tokens_BK, index_BT, axis=1)
    turns = (live_B * start_BT.sum(axis=1)).sum()
    return safe_divide(mask_BT * weight_B[:, None], tokens_BT * turns)
