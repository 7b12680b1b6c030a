"""SEED-GRPO on eight samples whose answers form clusters of 4, 2, 1, 1."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

CLUSTERS = np.array([0, 0, 0, 0, 1, 1, 2, 3])
A = jnp.array([1.0, -1.0, 0.5, 0.0, 2.0, -2.0, 1.0, -1.5])


def group(toy, ids=CLUSTERS, logp=None):
  """One group of one-token rows."""
  logp = np.full((8, 1), -1.0) if logp is None else logp
  return toy.trajectories(
    np.ones((8, 1)),
    group_size=8,
    logp_old_BT=logp,
    extras={'cluster_id_B': np.asarray(ids)},
  )


def test_entropy_by_hand(toy):
  """P = 1/2, 1/4, 1/8, 1/8: H = (1/2 + 2/4 + 2 * 3/8) log 2 = 1.21301; the
  Monte Carlo form is (1 + 2 + 3 + 3) / 4 log 2 = 1.55958."""
  for estimator, expected in [
    ('count', 1.21301),
    ('likelihood', 1.21301),  # equal likelihoods are counts
    ('monte_carlo', 1.55958),
  ]:
    piece = credit.SemanticEntropyScale(estimator=estimator)
    found = piece._entropy(group(toy))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


@pytest.mark.parametrize(
  'scale, factor',
  # z = alpha H / log 8 with alpha 1/2 and H / log 8 = .58333: .291667.
  [('reciprocal', 0.774194), ('linear', 0.708333), ('exponential', 0.747017)],
)
def test_factor_by_hand(toy, scale, factor):
  """1 / (1 + z), 1 - z, exp(-z)."""
  piece = credit.SemanticEntropyScale(alpha=0.5, estimator='count', scale=scale)
  np.testing.assert_allclose(
    piece(CreditContext(A, group(toy))).value, factor * A, rtol=1e-5
  )


def test_likelihoods_weigh_the_clusters(toy):
  """Three rows of which two agree, p = .6 and .2 + .2: H = .673012."""
  traj = toy.trajectories(
    np.ones((3, 1)),
    group_size=3,
    logp_old_BT=np.log([[0.6], [0.2], [0.2]]),
    extras={'cluster_id_B': np.array([0, 1, 1])},
  )
  entropy = credit.SemanticEntropyScale()._entropy(traj)
  np.testing.assert_allclose(entropy, [0.673012], rtol=1e-5)


def test_agreement_and_alpha_zero_change_nothing(toy):
  """E1: H = 0 or alpha = 0 is the base advantage."""
  agree = group(toy, np.zeros(8))
  np.testing.assert_allclose(
    credit.SemanticEntropyScale()(CreditContext(A, agree)).value, A
  )
  off = credit.SemanticEntropyScale(alpha=0.0)
  np.testing.assert_allclose(off(CreditContext(A, group(toy))).value, A)


def test_rows_without_an_answer_are_clusters_of_their_own(toy):
  """All missing equals all different: H = log 8. Names do not matter."""
  piece = credit.SemanticEntropyScale(estimator='count')
  missing = piece._entropy(group(toy, np.full(8, -1)))
  np.testing.assert_allclose(missing, [np.log(8)], rtol=1e-6)
  renamed = piece._entropy(group(toy, 10 - CLUSTERS))
  np.testing.assert_allclose(renamed, piece._entropy(group(toy)), rtol=1e-6)


def test_a_missing_key_is_named(toy):
  """Nothing guesses the clusters."""
  traj = toy.trajectories(np.ones((2, 1)), group_size=2)
  with pytest.raises(ValueError, match='cluster_id_B'):
    credit.SemanticEntropyScale()(CreditContext(jnp.zeros(2), traj))
