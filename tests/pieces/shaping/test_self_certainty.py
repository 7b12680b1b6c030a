"""The mean self-certainty of a response as its reward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models import heads, spec, transformer
from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.statistics import Certainty


def test_by_hand(toy):
  """Means over trained tokens of (1, 3) and (2); the masked 99 is not read."""
  traj = toy.trajectories(
    np.array([[1, 0, 1], [1, 0, 0]]),
    group_size=2,
    extras={'self_certainty': np.array([[1.0, 99, 3], [2, 99, 99]])},
  )
  for coef in (1.0, 0.5):
    R = shaping.SelfCertainty(coef=coef)(
      CreditContext(jnp.array([5.0, 6.0]), traj)
    ).value
    np.testing.assert_allclose(R, [2 * coef, 2 * coef], rtol=1e-6)


@pytest.mark.slow
def test_the_statistic_is_the_divergence_from_uniform(toy):
  """E1: scoring's number is -1/V sum log(V p), at least 0."""
  cfg = transformer.ModelConfig(
    vocab_size=7,
    num_layers=1,
    width=8,
    num_heads=2,
    num_kv_heads=1,
    head_size=4,
    mlp_size=8,
    max_positions=16,
  )
  params = spec.init(transformer.specs(cfg), jax.random.key(0))
  traj = toy.trajectories(np.ones((2, 3)), group_size=2)
  needs = (Certainty(), 'hidden')
  stats = token_statistics(Forward(model=cfg), params, traj, needs)
  logits = np.asarray(heads.logits(params, cfg, stats['hidden']), np.float64)
  p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  expected = -np.log(7 * p).mean(-1)
  assert (expected >= 0).all()
  np.testing.assert_allclose(
    stats['self_certainty'], expected, rtol=1e-4, atol=1e-6
  )
