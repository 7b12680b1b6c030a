"""RiskPO on one bundle of five prompts with two samples each."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

# Sample 0 is right everywhere (S = 5), sample 1 on prompts 0 and 1 (S = 2).
REWARD = np.array([[1, 1], [1, 1], [1, 0], [1, 0], [1, 0]], np.float32)
# Tracked quantiles 5 s: q = 1 at level .2 and 4 at level .8.
STATE = {
  'quantiles': 5 * jnp.arange(1, 20) / 20,
  'exist': jnp.array(True),
}


def risk(toy, state=STATE, reward=REWARD, valid=None, **fields):
  """(advantages [N, G], state) of one rollout."""
  N, G = reward.shape
  traj = toy.trajectories(
    np.ones((N * G, 1)),
    group_size=G,
    valid_B=np.ones(N * G) if valid is None else np.asarray(valid).ravel(),
  )
  fields = {'credit': 'uniform', 'scale': False, **fields}
  adv, state = credit.BundleRisk(**fields)(
    CreditContext(jnp.asarray(reward).ravel(), traj, state)
  )
  return np.asarray(adv).reshape(N, G), state


def test_weight_of_scores_by_hand():
  """q = 1 and 4, w 1.5: S = 0 has v = -1 / .2 = -5 and u = 0: -7.5 / 2.5; with
  the constant -3 / .6 in u 2 less; S = 2: u = 1 / .6; flat above 4."""
  score = jnp.array([0.0, 1.0, 2.0, 4.0, 5.0])
  expected = np.array([-3, 0, 0.666667, 2, 2])
  piece = credit.BundleRisk()
  np.testing.assert_allclose(
    piece._risk(score, 1.0, 4.0), expected, rtol=1e-4, atol=1e-5
  )
  piece = credit.BundleRisk(constant=True)
  np.testing.assert_allclose(
    piece._risk(score, 1.0, 4.0), expected - 2, rtol=1e-4, atol=1e-5
  )


def test_eps_is_added_to_the_widths():
  """eps .1: v = -1 / .3 at S = 0 and u = 1 / .7 at S = 2."""
  weight = credit.BundleRisk(eps=0.1)._risk(jnp.array([0.0, 2.0]), 1.0, 4.0)
  np.testing.assert_allclose(weight, [-2, 0.571429], rtol=1e-5)


def test_eps_is_added_to_the_std(toy):
  """eps .1: u = 3 / .7 and 1 / .7, over 2.5 and by 3 / sqrt 2 + .1: 1.714286 /
  2.221320 and .571429 / 2.221320. A prompt's std counts as 1 without spread
  and is sqrt(1/2) with rewards 1 and 0: / 1.1 and / .807107."""
  adv, _ = risk(toy, scale=True, eps=0.1)
  np.testing.assert_allclose(adv[0], [0.771742, 0.257247], rtol=1e-4)
  adv, _ = risk(toy, credit='std', eps=0.1)
  np.testing.assert_allclose(adv[0], [1.558442, 0.519481], rtol=1e-4)
  np.testing.assert_allclose(adv[4], [2.123989, 0.707996], rtol=1e-4)


def test_small_deviations_are_taken_as_none(toy):
  """A prompt's std of .0015 divides, .0005 does not: A = -3 at S = 0, over
  .001501 and 1.000001."""
  root = np.sqrt(2.0)
  reward = np.array([[0, 0.0015 * root], [0, 0.0005 * root]], np.float32)
  adv, _ = risk(toy, reward=reward, credit='std')
  np.testing.assert_allclose(adv[:, 0], [-1998.668, -3], rtol=1e-4)


def test_credit_by_hand(toy):
  """A = 2 and .666667. share: deviations 0, 0, +-1/2 thrice, so a third of A
  on prompts 2 to 4; std: divided by sqrt(1/2) there and by 1 elsewhere."""
  both = np.array([2, 0.666667])
  adv, _ = risk(toy)
  np.testing.assert_allclose(adv, np.tile(both, (5, 1)), rtol=1e-4)
  adv, _ = risk(toy, credit='share')
  np.testing.assert_allclose(
    adv, [0 * both] * 2 + [both / 3] * 3, rtol=1e-4, atol=1e-6
  )
  adv, _ = risk(toy, credit='std')
  np.testing.assert_allclose(
    adv, [both] * 2 + [both * np.sqrt(2)] * 3, rtol=1e-4
  )


def test_scale_by_hand(toy):
  """The std of 5 and 2 is 3 / sqrt 2."""
  adv, _ = risk(toy, scale=True)
  np.testing.assert_allclose(adv[0], [0.942809, 0.314270], rtol=1e-4)


def test_first_rollout_uses_its_own_quantiles(toy):
  """For 2 and 5, q = 2.6 and 4.4. S = 5: 1.8 / .6 / 2.5 = 1.2; S = 2: v = -.6 /
  .2 = -3, -4.5 / 2.5 = -1.8. They are tracked from then on.
  """
  adv, state = risk(toy, credit.BundleRisk().init(7))
  np.testing.assert_allclose(adv[3], [1.2, -1.8], rtol=1e-4)
  expected = 2 + 3 * np.arange(1, 20) / 20
  np.testing.assert_allclose(state['quantiles'], expected, rtol=1e-5)
  assert bool(state['exist'])


def test_tracker_by_hand(toy):
  """Half of the scores (the 2) lies below 4 and none below 1: 1 + .1 * .2 and
  4 + .1 * (.8 - .5)."""
  _, state = risk(toy)
  np.testing.assert_allclose(state['quantiles'][3], 1.02, rtol=1e-5)
  np.testing.assert_allclose(state['quantiles'][15], 4.03, rtol=1e-5)


def test_mean_limit(toy):
  """E1: without tail weight, between far quantiles, A is S up to a constant and
  a factor (5 s is replaced by 100 s - 50)."""
  far = {**STATE, 'quantiles': 20 * STATE['quantiles'] - 50}
  adv, _ = risk(toy, far, tail=0.0)
  np.testing.assert_allclose(adv[0, 0] - adv[0, 1], 3 / 0.6, rtol=1e-4)


def test_equal_scores_stay_finite(toy):
  """No spread: no division by a std of 0 and equal shares of A."""
  reward = np.ones((5, 2), np.float32)
  adv, _ = risk(toy, reward=reward, scale=True, credit='share')
  np.testing.assert_allclose(adv, 2 / 5, rtol=1e-4)


def test_order_of_prompts_in_a_bundle_does_not_matter(toy):
  """E1; and an invalid reward counts as its prompt's mean."""
  turn = [4, 2, 0, 1, 3]
  adv, _ = risk(toy, credit='share')
  moved, _ = risk(toy, reward=REWARD[turn], credit='share')
  np.testing.assert_allclose(moved, adv[turn], rtol=1e-5, atol=1e-7)
  broken, valid = REWARD.copy(), np.ones((5, 2))
  broken[0, 1], valid[0, 1] = 99.0, 0.0  # its prompt's other reward is 1
  held, _ = risk(toy, reward=broken, valid=valid)
  np.testing.assert_allclose(held, risk(toy)[0], rtol=1e-5)


def test_state_survives_a_save(toy):
  """E0: 2 N = N, save, restore, N."""
  steps = np.random.RandomState(0).randint(0, 2, (4, 5, 2)).astype(np.float32)
  state = half = credit.BundleRisk().init(5)
  for i, reward in enumerate(steps):
    direct, state = risk(toy, state, reward)
    if i == 2:
      half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
    resumed, half = risk(toy, half, reward)
  np.testing.assert_array_equal(direct, resumed)
  np.testing.assert_array_equal(state['quantiles'], half['quantiles'])


def test_bundles_must_fill_the_rollout(toy):
  """Seven prompts cannot be cut into bundles of five."""
  with pytest.raises(ValueError, match='bundle = 5 must divide 7'):
    risk(toy, reward=np.ones((7, 2), np.float32))


@pytest.mark.parametrize('reward', [0.15, 0.3, 0.35, 0.7])
def test_equal_scores_lie_at_their_quantiles(toy, reward):
  """They are below none: all quantiles rise by rate s, s = .05, ..., .95."""
  rewards = np.full((2, 2), reward, np.float32)
  none = credit.BundleRisk(bundle=1).init(2)
  _, first = risk(toy, none, rewards, bundle=1)
  _, second = risk(toy, first, rewards, bundle=1)
  np.testing.assert_array_equal(first['quantiles'], np.float32(reward))
  rise = second['quantiles'] - first['quantiles']
  np.testing.assert_allclose(rise, 0.1 * np.arange(1, 20) / 20, rtol=1e-4)
