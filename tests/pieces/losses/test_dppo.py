"""Trust regions of DPPO by hand."""

import numpy as np
import pytest

from rl_jax.pieces import losses

TV, KL = (
  losses.DPPO(divergence='tv', low=0.15, high=0.15),
  losses.DPPO(divergence='kl', low=0.05, high=0.05),
)


def coefficient(toy, loss, old, new, adv):
  """-dl/dlogp of one row, from probabilities."""
  return toy.coefficient(
    loss,
    np.log([new]),
    logp_old_BT=np.log([old]),
    advantages_BT=np.array([adv]),
  )[0]


def test_total_variation_by_hand(toy):
  """.7 -> .9 is .2 too far up for A > 0, not for A < 0 (ratio 1.285714);
  .9 -> .7 the other way round, also for A = 1/2. 1e-4 -> .01 has ratio 100, cut
  at 20."""
  actual = coefficient(
    toy,
    TV,
    [0.7, 0.7, 0.9, 0.9, 0.9, 1e-4],
    [0.9, 0.9, 0.7, 0.7, 0.7, 0.01],
    [1.0, -1, -1, 1, 0.5, 1],
  )
  expected = [0, -1.285714, 0, 0.777778, 0.388889, 20]
  np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_binary_kl_by_hand(toy):
  """From .5: to .6 .020411 nats, to .8 .5 log(.625) + .5 log 2.5 = .223144."""
  actual = coefficient(
    toy, KL, [0.5, 0.5, 0.5, 0.5], [0.6, 0.8, 0.8, 0.2], [1.0, 1, -1, -1]
  )
  np.testing.assert_allclose(actual, [1.2, 0, -1.6, 0], rtol=1e-5)


@pytest.mark.parametrize('distance, limit', [('tv', 0.3), ('kl', 0.223144)])
def test_the_limit_counts(toy, distance, limit):
  """.5 -> .8 lies just inside a limit above its distance, outside below."""
  for factor, kept in ((1.001, 1.6), (0.999, 0.0)):
    loss = losses.DPPO(divergence=distance, low=0.0, high=limit * factor)
    actual = coefficient(toy, loss, [0.5], [0.8], [1.0])
    np.testing.assert_allclose(actual, [kept], rtol=1e-5)


def test_on_policy_it_is_reinforce(toy):
  """E1, also for a token of probability 1 and with limits 0."""
  adv = [0.5, -2.0, 1.0]
  for name in ('tv', 'kl'):
    loss = losses.DPPO(divergence=name, low=0.0, high=0.0)
    actual = coefficient(toy, loss, [0.3, 1e-6, 1.0], [0.3, 1e-6, 1.0], adv)
    np.testing.assert_allclose(actual, adv, rtol=1e-6)


def test_certain_tokens_by_hand(toy):
  """Probability 1 before or after: the binary KL has log(0) on paper. 1 -> .5
  is log 2, .5 -> 1 more: kept where A is against the move. .999 -> 1 has moved
  .999 log .999 + .001 log(.001 / 2^-24) = .0087 nats: inside."""
  actual = coefficient(
    toy,
    KL,
    [1.0, 1.0, 0.5, 0.5, 0.999],
    [0.5, 0.5, 1.0, 1.0, 1.0],
    [1.0, -1, 1, -1, 1],
  )
  np.testing.assert_allclose(actual, [0.5, 0, 0, -2, 1.001001], rtol=1e-5)
