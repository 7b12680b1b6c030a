"""Links of losses on pairs that end at a target: squares and the hinge.

Links are (win, lose, margin), each [N, E] -> loss [N, E]; d = win - lose -
margin of the scores. Sources are by digests of the code unless a line says
otherwise.
"""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops import links
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Link
from rl_jax.types import Array


@piece
class Hinge(Link):
  """max(0, delta - d). Source: SLiC-HF; HALOs SLiCTrainer."""

  delta: float = ranged(1.0, 0.0, open_low=True)  # in units of the score
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]; no gradient from d = delta on."""
    short = self.delta - (win - lose - margin)
    return jnp.where(short > 0, short, 0.0)


@piece
class Square(Link):
  """(d - 1 / (2 tau))^2: smallest at d = 1 / (2 tau), where it stays.

  Source: IPO; TRL dpo_trainer.py takes the mean log-ratio, EasyLM the sum.
  """

  tau: float = ranged(0.1, 0.0, open_low=True)
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    return (win - lose - margin - 0.5 / self.tau) ** 2


@piece
class SquareOfGap(Link):
  """(d)^2: differences of scores are fitted to margins, those of rewards.

  With margin_scale 1 and the score beta D this is the squared form of CoPG and
  REBEL on pairs. Source: preference digest, section D (algebra checked).
  """

  margins = links.FITTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    return (win - lose - margin) ** 2


@piece
class Targets(Link):
  """(win - 1 / (2 beta))^2 + (lose + 1 / (2 beta))^2: each row has its target.

  On scores D itself (beta of the score 1). Source: uclaml/SPPO trainer.py, TRL
  (sppo_hard).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    target = 0.5 / self.beta
    return (win - target) ** 2 + (lose + target) ** 2


@piece
class PairTargets(Link):
  """((win - t)^2 + (lose + t)^2) / 2, t = (sigmoid(margin) - 1/2) / beta.

  sigmoid(margin) is the probability that the winner is better than the loser:
  of a reward model, with margin_scale 1. On scores D itself (beta of the score
  1). Source: uclaml/SPPO trainer.py (sppo_single; by a digest of the code).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  margins = links.LOGIT

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    target = (jax.nn.sigmoid(margin) - 0.5) / self.beta
    return 0.5 * ((win - target) ** 2 + (lose + target) ** 2)
