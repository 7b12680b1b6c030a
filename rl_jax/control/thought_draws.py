"""Ways to draw a continuous thought from the probabilities of thought tokens.

`sample` gives the shares of the tokens, whose mean embedding the next place
reads, and what was drawn; `logp` is the log-likelihood of that under other
probabilities. Both rules are those of "Continuous Chain of Thought Enables
Parallel Exploration and Reasoning" (CoT2), alperengozeten/CoT2
train/continuous_train_grpo_mts.py and continuous_train_grpo_dirichlet.py (by a
digest).
"""

import dataclasses

import jax
import jax.numpy as jnp

from rl_jax.checks import checked, ranged
from rl_jax.types import Array

_OUTSIDE = 1.0  # in place of a logarithm of a share, which is at most 0


def log(prob: Array) -> Array:
  """The logarithm, of 1e-30 at least."""
  return jnp.log(jnp.maximum(prob, 1e-30))


@dataclasses.dataclass(frozen=True)
@checked
class TokenDraws:
  """K tokens with replacement, the share of a token being its count / K.

    log p(counts) = sum_a count_a lp(a)

  With `normalised` lp is of softmax(logits / K); without it of softmax(logits),
  and the sum is divided by K. The number of orders in which the tokens could
  have come is left out, as it leaves every ratio.
  """

  draws: int = ranged(3, 1)
  normalised: bool = True

  def sample(self, key: Array, prob_BA: Array) -> tuple[Array, Array]:
    """(shares, counts), both [B, A]."""
    logp_BA, shape = self._token_logp(prob_BA), (self.draws, len(prob_BA))
    drawn_KB = jax.random.categorical(key, logp_BA, shape=shape)
    count_BA = jax.nn.one_hot(drawn_KB, prob_BA.shape[1]).sum(axis=0)
    return count_BA / self.draws, count_BA

  def logp(self, prob_BTA: Array, count_BTA: Array) -> Array:
    """[B, T]."""
    total_BT = (count_BTA * self._token_logp(prob_BTA)).sum(axis=-1)
    return total_BT if self.normalised else total_BT / self.draws

  def _token_logp(self, prob_BTA: Array) -> Array:
    sharpness = 1 / self.draws if self.normalised else 1.0
    return jax.nn.log_softmax(sharpness * log(prob_BTA), axis=-1)


@dataclasses.dataclass(frozen=True)
@checked
class DirichletDraws:
  """Shares w of the tokens that are likely, as one draw of a distribution.

    w ~ Dir(alpha), alpha_a = scale p(a) / sum of p over the likely tokens
    log p(w) = log G(scale) - sum_a log G(alpha_a) + sum_a (alpha_a - 1) log w_a

  G is the gamma function. Tokens are likely if p(a) >= least, and the likeliest
  one always is; they stay those of the draw under other probabilities. What is
  drawn is kept as log w, since most shares of a small alpha are below what a
  float can hold. A larger scale draws nearer to p itself.
  There the likely tokens are those of the present policy or the former one; the
  bound is ours.
  """

  scale: float = ranged(1.0, 0.0, open_low=True)
  least: float = ranged(0.01, 0.0, 1.0, open_low=True)

  def sample(self, key: Array, prob_BA: Array) -> tuple[Array, Array]:
    """(shares, log w, which is 1 for tokens that were left out), [B, A]."""
    likeliest_B1 = prob_BA.max(axis=-1, keepdims=True)
    likely_BA = prob_BA >= jnp.minimum(self.least, likeliest_B1)
    alpha_BA = self._alpha(prob_BA, likely_BA)
    size_BA = jax.random.loggamma(key, alpha_BA)
    size_BA = jnp.where(likely_BA, size_BA, -jnp.inf)
    logw_BA = jax.nn.log_softmax(size_BA, axis=-1)
    return jnp.exp(logw_BA), jnp.where(likely_BA, logw_BA, _OUTSIDE)

  def logp(self, prob_BTA: Array, logw_BTA: Array) -> Array:
    """[B, T]."""
    likely_BTA = logw_BTA <= 0
    alpha_BTA = self._alpha(prob_BTA, likely_BTA)
    term_BTA = (alpha_BTA - 1) * logw_BTA - jax.lax.lgamma(alpha_BTA)
    total_BT = jnp.where(likely_BTA, term_BTA, 0.0).sum(axis=-1)
    return total_BT + jax.lax.lgamma(jnp.float32(self.scale))

  def _alpha(self, prob_BTA: Array, likely_BTA: Array) -> Array:
    """The alphas of likely tokens; 1 for the others, which count nowhere."""
    own_BTA = jnp.where(likely_BTA, jnp.maximum(prob_BTA, 1e-6), 0.0)
    alpha_BTA = self.scale * own_BTA / own_BTA.sum(axis=-1, keepdims=True)
    return jnp.where(likely_BTA, alpha_BTA, 1.0)
