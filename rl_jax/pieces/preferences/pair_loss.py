"""A loss on comparisons: a score of each row, a link, a weight of each edge."""

from collections.abc import Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops import links
from rl_jax.pieces.ops.edges import (
  edge_mean,
  ends,
  live_weights,
)
from rl_jax.pieces.ops.masking import masked_sum
from rl_jax.pieces.ops.pair_metrics import pair_metrics
from rl_jax.pieces.piece import CheckContext, Piece, piece
from rl_jax.pieces.roles import (
  EdgeWeight,
  Link,
  Loss,
  LossContext,
  LossOut,
  Score,
)


@piece
class PairLoss(Loss):
  """L = coef sum over edges of w link(s_win, s_lose, margin) / edges.

  A link that reads the confidence of labels gets that in place of the margin.
  Edges of weight 0 or with a row that is not trained count nowhere. s is a
  score of a row, w the weight of an edge without gradient (1 by default).
  The number of edges is that of the whole minibatch.
  """

  score: Any  # preferences.scores
  link: Any  # preferences.links
  weight: Any = None  # preferences.edge_weights
  coef: float = ranged(1.0, 0.0)
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  min_group_size = 2
  off_policy = True

  @property
  def needs(self) -> tuple[Any, ...]:
    """The statistics that the score and the weight read."""
    parts = [x for x in (self.score, self.weight) if isinstance(x, Piece)]
    return tuple(need for part in parts for need in part.needs)

  @property
  def reads(self) -> Mapping[str, str]:
    """The keys of the data that the weight reads."""
    return self.weight.reads if isinstance(self.weight, EdgeWeight) else {}

  def check(self, context: CheckContext) -> None:
    """Raises ValueError for choices of another kind, or without pairs."""
    method = context.method
    parts = {
      'score': (Score, self.score),
      'link': (Link, self.link),
      'weight': (EdgeWeight, self.weight),
    }
    for field, (base, part) in parts.items():
      optional = field == 'weight' and part is None
      if not optional and not isinstance(part, base):
        raise ValueError(
          f'PairLoss.{field} holds {type(part).__name__}, which is not a '
          f'{base.role} of rl_jax/pieces/preferences'
        )
    if method.pairs is None:
      raise ValueError(
        'method.losses.PairLoss compares samples: set method.pairs, for '
        'example to BestWorst() or, for pairs from data, RecordedPairs()'
      )
    name, gives = type(method.pairs).__name__, method.pairs.gives
    if gives is not None:
      self.check_edges(gives, f'pairs={name}()')
    others = [one for one in method.losses if isinstance(one, PairLoss)]
    if gives == links.MARGIN and not any(one._reads_margins for one in others):
      names = sorted({type(one.link).__name__ for one in others})
      raise ValueError(
        f'method.pairs.{name} gives margins, which none of PairLoss.link = '
        f'{", ".join(names)} reads: set its scale to 0, or take link=Sigmoid()'
      )

  @property
  def _reads_margins(self) -> bool:
    """Returns whether the margins of edges are in the loss."""
    return self.link.margins not in (links.UNUSED, links.CONFIDENCE)

  def check_edges(self, gives: str, maker: str) -> None:
    """Raises ValueError if the link reads what edges of the maker lack."""
    links.check_link(self.link, gives, maker)

  def check_win_rates(
    self, path: str, pairwise: list[str], others: list[str]
  ) -> None:
    """Raises ValueError if margins are not the logits that the link reads."""
    del others
    if self.link.margins == links.LOGIT:
      raise ValueError(
        f'{path}.link = {type(self.link).__name__}() reads differences of '
        f'rewards as logits, and {pairwise[0]} gives win rates: take a reward '
        'model or judge of single responses'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    stats, traj = ctx.stats, ctx.traj
    logp_BT, mask_BT = stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, mask_BT])
    weight_NE = live_weights(traj)
    win_NE, lose_NE = ends(self.score(ctx), traj.edges)
    # Values of edges that do not count may be anything.
    live_NE = weight_NE != 0
    margin_NE = traj.edges.margin_NE
    if self.link.margins == links.CONFIDENCE:
      margin_NE = traj.edges.confidence_NE
      if margin_NE is None:
        raise ValueError(
          f'PairLoss.link = {type(self.link).__name__}() reads how sure the '
          'labels are, but edges.confidence_NE is None: the maker of the pairs '
          'must fill it in'
        )
    win_NE, lose_NE, margin_NE = (
      jnp.where(live_NE, x, 0.0) for x in (win_NE, lose_NE, margin_NE)
    )
    factor_NE = 1.0
    if self.weight is not None:
      factor_NE = jax.lax.stop_gradient(self.weight(ctx))
      factor_NE = jnp.where(live_NE, factor_NE, 0.0)
    loss_NE = self.link(win_NE, lose_NE, margin_NE)
    logp_B = masked_sum(logp_BT, mask_BT, axis=1)
    metrics = pair_metrics(win_NE, lose_NE, logp_B, traj)
    if self.weight is not None:
      ones_NE = jnp.ones_like(loss_NE)
      metrics['preference/weight'] = edge_mean(ones_NE, weight_NE, factor_NE)
    loss = edge_mean(loss_NE, weight_NE, factor_NE)
    return LossOut(self.coef * loss, metrics)
