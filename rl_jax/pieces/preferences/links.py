"""Links of losses on pairs: (win, lose, margin), each [N, E] -> loss [N, E].

d = win - lose - margin of the scores; ls is the logarithm of the sigmoid.
Sources are by digests of the code unless a line says otherwise.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.types import Array

ls = jax.nn.log_sigmoid


@piece
class Sigmoid:
  """-(1 - e) ls(d - gamma) - e ls(-(d - gamma)), e = label_smoothing.

  e > 0 is cDPO: labels are believed with probability 1 - e, and the loss is
  smallest at d = log((1 - e) / e). gamma > 0 is SimPO's target margin.
  Source: TRL dpo_trainer.py, HALOs cdpo.yaml, SimPO simpo_trainer.py.
  """

  label_smoothing: float = ranged(0.0, 0.0, 0.5)
  gamma: float = ranged(0.0, 0.0)  # in units of the score
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d = win - lose - margin - self.gamma
    e = self.label_smoothing
    return -(1.0 - e) * ls(d) - e * ls(-d)


@piece
class Robust:
  """-((1 - e) ls(d) - e ls(-d)) / (1 - 2 e), e = flip_rate.

  Unbiased for the loss of clean labels if each was flipped with probability e;
  not bounded below. Source: TRL dpo_trainer.py (robust).
  """

  flip_rate: float = ranged(0.1, 0.0, 0.5, open_high=True)
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d, e = win - lose - margin, self.flip_rate
    return (e * ls(-d) - (1.0 - e) * ls(d)) / (1.0 - 2.0 * e)


@piece
class Hinge:
  """max(0, delta - d). Source: SLiC-HF; HALOs SLiCTrainer."""

  delta: float = ranged(1.0, 0.0, open_low=True)  # in units of the score
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]; no gradient from d = delta on."""
    short = self.delta - (win - lose - margin)
    return jnp.where(short > 0, short, 0.0)


@piece
class Square:
  """(d - 1 / (2 tau))^2: smallest at d = 1 / (2 tau), where it stays.

  Source: IPO; TRL dpo_trainer.py takes the mean log-ratio, EasyLM the sum.
  """

  tau: float = ranged(0.1, 0.0, open_low=True)
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    return (win - lose - margin - 0.5 / self.tau) ** 2


@piece
class SquareOfGap:
  """(d)^2: differences of scores are fitted to margins, those of rewards.

  With margin_scale 1 and the score beta D this is the squared form of CoPG and
  REBEL on pairs. Source: preference digest, section D (algebra checked).
  """

  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    return (win - lose - margin) ** 2


@piece
class SoftTarget:
  """-q ls(h) - (1 - q) ls(-h), h = win - lose, q = sigmoid(margin).

  The margin is the logit of the probability that the winner is better: scores
  are fitted to it, not past it. Source: DNO, Algorithm 1 (read in paper).
  """

  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    h, q = win - lose, jax.nn.sigmoid(margin)
    return -q * ls(h) - (1.0 - q) * ls(-h)


@piece
class EXO:
  """sigma(d) (ls(d) - log(1 - e)) + sigma(-d) (ls(-d) - log e).

  The reverse KL between the policy's preference and the smoothed label. Source:
  TRL dpo_trainer.py (exo_pair).
  """

  label_smoothing: float = ranged(1e-3, 0.0, 0.5, open_low=True)
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d, e = win - lose - margin, self.label_smoothing
    right = jax.nn.sigmoid(d) * (ls(d) - jnp.log1p(-e))
    return right + jax.nn.sigmoid(-d) * (ls(-d) - jnp.log(e))


@piece
class NCA:
  """-ls(win) - (ls(-win) + ls(-lose)) / 2: absolute scores, no margin.

  Source: TRL dpo_trainer.py (nca_pair).
  """

  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return -ls(win) - 0.5 * (ls(-win) + ls(-lose))


@piece
class APOZero:
  """1 - sigma(win) + sigma(lose): winners up, losers down.

  Source: TRL dpo_trainer.py (apo_zero).
  """

  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return jax.nn.sigmoid(-win) + jax.nn.sigmoid(lose)


@piece
class APODown:
  """sigma(win) + 1 - sigma(win - lose): both down, losers faster.

  Source: TRL dpo_trainer.py (apo_down).
  """

  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return jax.nn.sigmoid(win) + jax.nn.sigmoid(lose - win)


@piece
class DiscoPOP:
  """-(1 - s) ls(d) + s exp(-d), s = sigma(d / tau).

  A blend of the logistic and the exponential loss; the gradient goes through s,
  too. Source: TRL dpo_trainer.py (discopop).
  """

  tau: float = ranged(0.05, 0.0, open_low=True)
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d = win - lose - margin
    s = jax.nn.sigmoid(d / self.tau)
    # The exponent is held where s is 0 in float32.
    return -(1.0 - s) * ls(d) + s * jnp.exp(-jnp.maximum(d, -80.0))


@piece
class Positive:
  """-ls(d - coef max(0, -win)): no gain by a winner that falls.

  With the score beta D, win < 0 says that the chosen response is less likely
  than under the reference. Source: "Smaug: Fixing Failure Modes of Preference
  Optimisation with DPO-Positive" (from memory of the paper; not compared).
  """

  coef: float = ranged(50.0, 0.0)  # lambda of the paper
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    fallen = jnp.where(win < 0, -win, 0.0)
    return -ls(win - lose - margin - self.coef * fallen)


@piece
class Targets:
  """(win - 1 / (2 beta))^2 + (lose + 1 / (2 beta))^2: each row has its target.

  On scores D itself (beta of the score 1). Source: uclaml/SPPO trainer.py, TRL
  (sppo_hard).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  role: ClassVar[str] = 'link'

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    target = 0.5 / self.beta
    return (win - target) ** 2 + (lose + target) ** 2
