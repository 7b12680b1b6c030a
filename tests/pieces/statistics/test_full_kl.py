"""The exact divergence by hand, and from a frozen copy of the policy."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning import statistics
from rl_jax.pieces.statistics import Chunk, FullKL


def full_kl(logits, other):
  """[B, C] of one place."""
  chunk = Chunk(
    logits_BCV=logits,
    token_BC=jnp.zeros((1, 1), jnp.int32),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={'reference': other},
  )
  return FullKL()(chunk)[0, 0]


def test_by_hand():
  """(.7, .3) from (.5, .5): .7 ln 1.4 + .3 ln .6 = .082283."""
  logits, other = jnp.log(jnp.array([[[[0.7, 0.3]]], [[[0.5, 0.5]]]]))
  np.testing.assert_allclose(full_kl(logits, other), 0.082283, rtol=1e-5)
  # d KL / d logit_v = p_v (log(p_v / q_v) - KL) = .7 (.336472 - .082283)
  gradient = jax.grad(full_kl)(logits, other)
  np.testing.assert_allclose(gradient[0, 0], [0.177933, -0.177933], rtol=1e-4)


def test_what_has_no_probability_counts_nothing():
  """E1: a token that a transform took out of both policies."""
  logits = jnp.array([[[1.0, 0.0, -jnp.inf]]])
  other = jnp.array([[[0.0, 0.0, -jnp.inf]]])
  found, gradient = jax.value_and_grad(full_kl)(logits, other)
  expected = full_kl(logits[..., :2], other[..., :2])
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  assert jnp.isfinite(gradient[..., :2]).all()


def test_the_policy_itself_is_at_zero(tiny):
  """With the policies of a run: 0 from a copy, above 0 from other weights."""
  params, traj = tiny.params(), tiny.rollout()

  def mean(reference):
    given = {**params, 'policies': {'reference': reference}}
    forward = statistics.Forward(model=tiny.CFG)
    stats = statistics.token_statistics(forward, given, traj, (FullKL(),))
    return np.asarray(stats['full_kl'])

  np.testing.assert_allclose(mean(params), 0.0, atol=1e-6)
  other = mean(tiny.params(1))
  assert (other >= -1e-6).all() and other.max() > 1e-2
  assert not other[traj.mask_BT == 0].any()
