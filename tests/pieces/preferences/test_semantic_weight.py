"""Sem-DPO's weight of pairs."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import LossContext
from rl_jax.types import Edges

# One token a row: D = 1 and -0.5 against a reference of 0, so that DPO with
# beta 0.1 is 0.620957; the second pair is the first with all signs turned.
RATIO = np.array([[1.0], [-0.5], [-1.0], [0.5]])
DPO = pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid())


def loss(toy, distance, pairs=1, **fields):
  """Sem-DPO of the first pairs."""
  first = jnp.zeros((pairs, 1), jnp.int32)
  ones = jnp.ones((pairs, 1))
  traj = toy.trajectories(
    np.ones((2 * pairs, 1)),
    group_size=2,
    logp_ref_BT=np.zeros((2 * pairs, 1)),
    extras={'semantic_distance_B': jnp.asarray(distance, jnp.float32)},
    edges=Edges(
      win_NE=first, lose_NE=first + 1, weight_NE=ones, margin_NE=0 * ones
    ),
  )
  stats = {'logp': jnp.asarray(RATIO[: 2 * pairs], jnp.float32)}
  piece = DPO.replace(weight=pref.SemanticConsistency(**fields))
  return piece(LossContext(stats, traj, jax.random.key(0))).value


def test_by_hand(toy):
  """d = 0.4: w = exp(-0.8) = 0.449329, and 0.449329 * 0.620957 = 0.279014."""
  np.testing.assert_allclose(loss(toy, [0.4, 0.0]), 0.279014, rtol=1e-5)


def test_means_divide_by_pairs_not_by_weights(toy):
  """-ls(-0.15) = 0.770957: (w 0.620957 + 0.770957) / 2."""
  expected = (0.279014 + 0.770957) / 2
  found = loss(toy, [0.4, 0.0, 0.0, 0.0], pairs=2)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_no_decay_is_dpo(toy):
  np.testing.assert_allclose(loss(toy, [1.5, 0.0], decay=0.0), 0.620957, 1e-6)


def test_losers_have_no_distance(toy):
  """E0."""
  assert loss(toy, [0.4, 1.9]) == loss(toy, [0.4, 0.0])
