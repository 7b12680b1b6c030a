"""Links of losses on pairs that follow the log-sigmoid of d.

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
class Sigmoid(Link):
  """-(1 - e) ls(d - gamma) - e ls(-(d - gamma)), e = label_smoothing.

  e > 0 is cDPO: labels are believed with probability 1 - e, and the loss is
  smallest at d = log((1 - e) / e). gamma > 0 is SimPO's target margin.
  Source: TRL dpo_trainer.py, HALOs cdpo.yaml, SimPO simpo_trainer.py.
  """

  label_smoothing: float = ranged(0.0, 0.0, 0.5)
  gamma: float = ranged(0.0, 0.0)  # in units of the score
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d = win - lose - margin - self.gamma
    e = self.label_smoothing
    return -(1.0 - e) * ls(d) - e * ls(-d)


@piece
class DiscoPOP(Link):
  """-(1 - s) ls(d) + s exp(-d), s = sigma(d / tau).

  A blend of the logistic and the exponential loss; the gradient goes through s,
  too. Source: TRL dpo_trainer.py (discopop).
  """

  tau: float = ranged(0.05, 0.0, open_low=True)
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    d = win - lose - margin
    s = jax.nn.sigmoid(d / self.tau)
    # The exponent is held where s is 0 in float32.
    return -(1.0 - s) * ls(d) + s * jnp.exp(-jnp.maximum(d, -80.0))


@piece
class Positive(Link):
  """-ls(d - coef max(0, -win)): no gain by a winner that falls.

  With the score beta D, win < 0 says that the chosen response is less likely
  than under the reference. Source: "Smaug: Fixing Failure Modes of Preference
  Optimisation with DPO-Positive" (Eq. 3, by a summary: the penalty is inside
  the log-sigmoid; that beta multiplies it is inferred).
  """

  coef: float = ranged(50.0, 0.0)  # lambda of the paper
  margins = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    fallen = jnp.where(win < 0, -win, 0.0)
    return -ls(win - lose - margin - self.coef * fallen)


@piece
class AnchorSign(Link):
  """-ls(win - sign lose), sign = 1 where win >= 0, else -1, without gradient.

  With the score beta D: while the policy fits the winner less well than the
  reference does, the other response is raised, too. Margins do not count.
  Source: SePPO (semi-policy preference optimisation of diffusion models;
  structure from reviews, the form for language models is ours).
  """

  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return -ls(win - jnp.where(win >= 0, 1.0, -1.0) * lose)
