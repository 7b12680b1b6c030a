"""EMPG on one row of three steps with entropies .2, .4 and 1."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

# Two tokens a step, environment tokens between the steps.
MASK = np.array([[1, 1, 0, 1, 1, 0, 1, 1]])
ENTROPY = np.array([[0.1, 0.3, 9.0, 0.4, 0.4, 9.0, 1.5, 0.5]])


def row(toy, **fields):
  """The row above."""
  return toy.trajectories(
    MASK, group_size=1, **{'entropy_BT': ENTROPY, **fields}
  )


def test_by_hand(toy):
  """H scaled: 0, .25, 1; exp(-H) = 1, .7788, .3679 with mean .71556:
  g = 1.39751, 1.08838, .51411; f of the next step = .7788, .3679, 0.
  A = 1, zeta = .5: 1.78691, 1.27232, .51411, less their mean 1.19111."""
  piece = credit.EntropyModulation(zeta=0.5)
  adv = piece(CreditContext(jnp.ones(1), row(toy))).value
  expected = [[0.595794, 0.595794, 0.081206, 0.081206, -0.676999, -0.676999]]
  np.testing.assert_allclose(adv[:, MASK[0] > 0], expected, rtol=1e-4)


def test_eps_is_added_to_the_range(toy):
  """eps .8 doubles it: H = 0, .125, .5; exp(-H) = 1, .882497, .606531 with mean
  .829676: g = 1.205290, 1.063665, .731045, less their mean 1."""
  piece = credit.EntropyModulation(zeta=0.0, eps=0.8)
  adv = piece(CreditContext(jnp.ones(1), row(toy))).value[0, MASK[0] > 0]
  expected = [0.205290, 0.205290, 0.063665, 0.063665, -0.268955, -0.268955]
  np.testing.assert_allclose(adv, expected, rtol=1e-4)


def test_without_modulation_it_is_the_centred_advantage(toy):
  """E1: k = zeta = 0 leaves A - mean over steps of A. Row 0 has three steps of
  A = 3, row 1 one of A = -1: mean 2."""
  mask = np.concatenate([MASK, [[1, 1, 1, 0, 0, 0, 0, 0]]])
  traj = toy.trajectories(
    mask, group_size=2, entropy_BT=np.concatenate([ENTROPY, ENTROPY])
  )
  piece = credit.EntropyModulation(k=0.0, zeta=0.0)
  adv = piece(CreditContext(jnp.array([3.0, -1.0]), traj)).value
  np.testing.assert_allclose(adv[0, MASK[0] > 0], 1.0, rtol=1e-6)
  np.testing.assert_allclose(adv[1, :3], -3.0, rtol=1e-6)


@pytest.mark.parametrize('entropy', np.linspace(0.1, 1.1, 11))
def test_equal_entropies_modulate_nothing(toy, entropy):
  """Four steps of 3, 4, 5 and 2 tokens: H = 0, g = 1, f = 1 but at the last.

  A + zeta f = 1.1, 1, 1.1, 1 less their mean 1.05. The float32 means of equal
  entropies differ, which over eps would be whole units of H.
  """
  start = np.zeros((2, 7))
  start[0, [0, 3]] = start[1, [0, 5]] = 1
  traj = toy.trajectories(
    np.ones((2, 7)),
    group_size=2,
    entropy_BT=np.full((2, 7), entropy),
    extras={'segment_start_BT': start},
  )
  adv = credit.EntropyModulation(segments='extras')(
    CreditContext(jnp.ones(2), traj)
  ).value
  expected = [[0.05] * 3 + [-0.05] * 4, [0.05] * 5 + [-0.05] * 2]
  np.testing.assert_allclose(adv, expected, rtol=1e-5)


def test_means_that_differ_by_rounding_are_equal(toy):
  """Steps with (.7, .2), (.6, .3) and (.2, .7) have the mean .45."""
  entropy = np.array([[0.7, 0.2, 9.0, 0.6, 0.3, 9.0, 0.2, 0.7]])
  piece = credit.EntropyModulation(zeta=0.0)
  adv = piece(CreditContext(jnp.ones(1), row(toy, entropy_BT=entropy))).value
  np.testing.assert_array_equal(adv, np.zeros_like(entropy))


@pytest.mark.parametrize('field', ['valid_B', 'weight_B'])
def test_rows_that_do_not_count_move_no_statistic(toy, field):
  """E1: the step entropies of an invalid row, or one of weight 0, are not in
  the range or means."""
  piece = credit.EntropyModulation()
  alone = piece(CreditContext(jnp.ones(1), row(toy))).value
  both = toy.trajectories(
    np.concatenate([MASK, MASK]),
    group_size=2,
    entropy_BT=np.concatenate([ENTROPY, 5 * ENTROPY]),
    **{field: np.array([1.0, 0.0])},
  )
  adv = piece(CreditContext(jnp.ones(2), both)).value
  on = MASK[0] > 0
  np.testing.assert_allclose(adv[:1, on], alone[:, on], rtol=1e-5)


def test_given_segments(toy):
  """E1: a start inside the first turn makes four steps, so the values differ;
  starts at the turns only give the same."""
  turns = np.array([[1, 0, 0, 1, 0, 0, 1, 0]])
  piece = credit.EntropyModulation(segments='extras')
  same = piece(
    CreditContext(jnp.ones(1), row(toy, extras={'segment_start_BT': turns}))
  ).value
  expected = credit.EntropyModulation()(
    CreditContext(jnp.ones(1), row(toy))
  ).value
  np.testing.assert_allclose(same, expected, rtol=1e-5)
  finer = turns + np.array([[0, 1, 0, 0, 0, 0, 0, 0]])
  adv = piece(
    CreditContext(jnp.ones(1), row(toy, extras={'segment_start_BT': finer}))
  ).value
  assert np.abs(adv[0, 0] - adv[0, 1]) > 0.1
  with pytest.raises(ValueError, match='segment_start_BT'):
    piece(CreditContext(jnp.ones(1), row(toy)))
