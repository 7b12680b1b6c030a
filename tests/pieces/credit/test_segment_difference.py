"""Segment credit of SPO: by hand, and that segments add up."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.credit import SegmentDifference
from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.row_inputs import NO_CUT


def credit(toy, cuts, values, reward, tokens):
  """Advantages of rows with the given cuts."""
  reward = np.asarray(reward, np.float32)
  traj = toy.trajectories(
    np.ones((len(reward), tokens)),
    group_size=1,
    reward_B=reward,
    extras={
      'cut_BC': jnp.asarray(cuts),
      'cut_value_BC': jnp.asarray(values, jnp.float32),
    },
  )
  return np.asarray(
    SegmentDifference()(CreditContext(traj.reward_B, traj)).value
  )


def test_credit_by_hand(toy):
  """Cuts 0, 4, 7 with values .25, .5, .75, reward 0: nothing up to token 0,
  then .5 - .25, .75 - .5, and 0 - .75 on the tail. From the prompt (-1), value
  .5: every token of a right response has .5."""
  found = credit(
    toy,
    [[0, 4, 7], [-1, NO_CUT, NO_CUT]],
    [[0.25, 0.5, 0.75], [0.5, 9.0, 9.0]],
    [0.0, 1.0],
    10,
  )
  np.testing.assert_allclose(
    found,
    [
      [0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, -0.75, -0.75],
      [0.5] * 10,
    ],
  )


def test_segments_add_up(toy):
  """E1: one token of each segment sums to R - V(first cut)."""
  rng = np.random.RandomState(0)
  cuts = np.sort(rng.permutation(12)[:4] - 1)[None]
  values = rng.uniform(size=(1, 4))
  found = credit(toy, cuts, values, [0.3], 14)
  ends = np.append(cuts[0], 13)[1:]
  np.testing.assert_allclose(
    found[0, ends].sum(), 0.3 - values[0, 0], rtol=1e-5
  )


def test_without_cuts_there_is_no_credit(toy):
  """E0: nothing uncertain, nothing to learn."""
  assert not credit(toy, [[NO_CUT] * 2], [[1.0, 1.0]], [1.0], 4).any()
