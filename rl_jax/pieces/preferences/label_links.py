"""Links of losses on pairs whose labels are right with a probability.

Links are (win, lose, margin), each [N, E] -> loss [N, E]; d = win - lose -
margin of the scores; ls is the logarithm of the sigmoid. Sources are by digests
of the code unless a line says otherwise.
"""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops import links
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Link
from rl_jax.types import Array

ls = jax.nn.log_sigmoid


@piece
class Robust(Link):
  """-((1 - e) ls(d) - e ls(-d)) / (1 - 2 e), e = flip_rate.

  Unbiased for the loss of clean labels if each was flipped with probability e;
  not bounded below. Source: TRL dpo_trainer.py (robust).
  """

  flip_rate: float = ranged(0.1, 0.0, 0.5, open_high=True)
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d, e = win - lose - margin, self.flip_rate
    return (e * ls(-d) - (1.0 - e) * ls(d)) / (1.0 - 2.0 * e)


@piece
class SoftTarget(Link):
  """-q ls(h) - (1 - q) ls(-h), h = win - lose, q = sigmoid(margin).

  The margin is the logit of the probability that the winner is better: scores
  are fitted to it, not past it. Source: DNO, Algorithm 1 (read in paper).
  Edges of margin 0, where q = 1/2, are what AllPairs leaves out.
  """

  margins = links.FITTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    h, q = win - lose, jax.nn.sigmoid(margin)
    return -q * ls(h) - (1.0 - q) * ls(-h)


@piece
class EXO(Link):
  """sigma(d) (ls(d) - log(1 - e)) + sigma(-d) (ls(-d) - log e).

  The reverse KL between the policy's preference and the smoothed label. Source:
  TRL dpo_trainer.py (exo_pair).
  """

  label_smoothing: float = ranged(1e-3, 0.0, 0.5, open_low=True)
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d, e = win - lose - margin, self.label_smoothing
    right = jax.nn.sigmoid(d) * (ls(d) - jnp.log1p(-e))
    return right + jax.nn.sigmoid(-d) * (ls(-d) - jnp.log(e))
