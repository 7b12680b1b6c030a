"""The Lagrangian mix of component advantages and the multiplier step."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

PAIR = ('outcome', 'format')
ROOT = np.sqrt(0.5)


def rollout(toy, outcome, form, gap=(0.0, 0.0)):
  """One group of two one-token rows; gap = logp_old - logp_ref."""
  reference = np.array([-3.0, -1.0])
  return toy.trajectories(
    np.ones((2, 1)),
    group_size=2,
    logp_old_BT=(reference + gap)[:, None],
    logp_ref_BT=reference[:, None],
    rewards={'outcome': np.asarray(outcome), 'format': np.asarray(form)},
  )


def test_advantage_by_hand(toy):
  """Two rows that differ have A = +-1/sqrt 2 (ddof 1). phi = 1/2 twice, K = 2:
  A_kl + A_outcome / 2 + A_format / 2. KL favours row 1, outcome row 0."""
  piece = credit.Lagrangian()
  traj = rollout(toy, [1.0, 0.0], [1.0, 1.0], gap=[0.4, 0.0])
  adv, _ = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
  np.testing.assert_allclose(adv, [-ROOT / 2, ROOT / 2], rtol=1e-5)


def test_multiplier_step_by_hand(toy):
  """Outcome .1 below its threshold: -(1/4)(-.1)(.1) = +.0025; then momentum
  .1 * -.025 - .25 * .1 = -.0275 adds .00275. Format is at its threshold."""
  piece = credit.Lagrangian(thresholds=(0.6, 1.0))
  traj = rollout(toy, [1.0, 0.0], [1.0, 1.0])
  _, state = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
  np.testing.assert_allclose(
    state['multipliers'], [0.0025, 0.0], rtol=1e-5, atol=1e-8
  )
  _, state = piece(CreditContext(jnp.zeros(2), traj, state))
  np.testing.assert_allclose(
    state['multipliers'], [0.00525, 0.0], rtol=1e-4, atol=1e-8
  )


def test_equality_constraints_push_down(toy):
  """tanh: a return above its threshold makes phi negative, so the outcome is
  pushed down; 'none' stays at 0."""
  traj = rollout(toy, [1.0, 0.0], [1.0, 1.0])
  for squash, sign in (('tanh', -1.0), ('none', 0.0)):
    piece = credit.Lagrangian(squash=squash, thresholds=(0.1, 1.0))
    _, state = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
    assert np.sign(state['multipliers'][0]) == sign
    adv, _ = piece(CreditContext(jnp.zeros(2), traj, state))
    assert np.sign(adv[0]) == sign


def test_gradient_is_bounded(toy):
  """tanh at 0 has slope 1; violations 3 and 4 have norm 5, cut to .5."""
  piece = credit.Lagrangian(squash='tanh', thresholds=(-3.0, -4.0))
  traj = rollout(toy, [0.0, 0.0], [0.0, 0.0])
  _, state = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
  np.testing.assert_allclose(state['multipliers'], [-0.03, -0.04], rtol=1e-5)


def test_zero_multipliers_leave_the_divergence(toy):
  """E1: 'none' at lambda 0 is the whitened KL advantage only; rewards are not
  read."""
  piece = credit.Lagrangian(squash='none')
  for outcome in ([1.0, 0.0], [0.0, 1.0]):
    traj = rollout(toy, outcome, [1.0, 0.0], gap=[0.4, 0.0])
    adv, _ = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
    np.testing.assert_allclose(adv, [-ROOT, ROOT], rtol=1e-5)


def test_units_of_a_component_do_not_matter(toy):
  """E1: ten times the outcome has the same advantage."""
  piece = credit.Lagrangian()
  one = rollout(toy, [1.0, 0.0], [0.0, 1.0], gap=[0.1, 0.0])
  ten = rollout(toy, [10.0, 0.0], [0.0, 1.0], gap=[0.1, 0.0])
  np.testing.assert_allclose(
    piece(CreditContext(jnp.zeros(2), one, piece.init(1)))[0],
    piece(CreditContext(jnp.zeros(2), ten, piece.init(1)))[0],
    rtol=1e-5,
  )


def by_values(toy, gap, values, **fields):
  """(advantages, piece) of two one-token rows with critics."""
  piece = credit.Lagrangian(baseline='values', **fields)
  traj = rollout(toy, [1.0, 0.0], [1.0, 1.0], gap)
  traj = traj.replace(values_BTH=jnp.asarray(values, jnp.float32)[:, None])
  return piece, traj


def test_advantage_by_critics_by_hand(toy):
  """Outcome (1, 0) - V (.9, 0) = (.1, 0) and divergence (-.4, 0) - 0 become
  +-1/sqrt 2; format (1, 1) - (.25, .25) becomes 0: (-1 + 1/2) / sqrt 2."""
  values = [[0.9, 0.25, 0.0], [0.0, 0.25, 0.0]]
  piece, traj = by_values(toy, [0.4, 0.0], values)
  adv, state = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
  np.testing.assert_allclose(adv, [[-ROOT / 2], [ROOT / 2]], rtol=1e-5)
  # Mean outcome .5, .4 below .9: -(1/4)(-.4)(.1) = .01.
  np.testing.assert_allclose(state['multipliers'], [0.01, -0.0025], rtol=1e-5)
  assert piece.num_values == 3 and 'value_heads' in piece.needs
  values[0][0] = 1.1  # more than was expected is bad: (-.1, 0)
  piece, traj = by_values(toy, [0.4, 0.0], values)
  adv, _ = piece(CreditContext(jnp.zeros(2), traj, piece.init(1)))
  np.testing.assert_allclose(adv, [[-1.5 * ROOT], [1.5 * ROOT]], rtol=1e-5)


def test_one_component_alone_is_whitened_gae(toy):
  """E1: phi = 1 leaves no divergence."""
  one = dict(components=('outcome',), thresholds=(0.9,), squash='tanh')
  piece, traj = by_values(toy, [0.4, 0.0], [[0.3, 9.0], [0.1, 9.0]], **one)
  state = {'multipliers': jnp.full(1, 20.0), 'momentum': jnp.zeros(1)}
  adv, _ = piece(CreditContext(jnp.zeros(2), traj, state))
  traj = traj.replace(values_BT=traj.values_BTH[..., 0])
  gae = credit.GAE(gamma=0.99)(
    CreditContext(traj.rewards['outcome'], traj)
  ).value
  np.testing.assert_allclose(
    adv, credit.Whiten()(CreditContext(gae, traj)).value, rtol=1e-6
  )


def test_state_survives_a_save(toy):
  """E0: 2 N = N, save, restore, N."""
  piece = credit.Lagrangian()
  steps = [rollout(toy, [1.0, 0.0], [x, 1.0]) for x in (0.0, 0.3, 0.9, 1.0)]
  state = half = piece.init(1)
  for i, traj in enumerate(steps):
    direct, state = piece(CreditContext(jnp.zeros(2), traj, state))
    if i == 2:
      half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
    resumed, half = piece(CreditContext(jnp.zeros(2), traj, half))
  np.testing.assert_array_equal(direct, resumed)
  np.testing.assert_array_equal(state['multipliers'], half['multipliers'])
  assert (np.asarray(state['multipliers']) != 0).all()


def test_components_are_checked(toy):
  """A component that the task does not return, and lengths that differ."""
  piece = credit.Lagrangian(components=('outcome', 'cost'))
  with pytest.raises(ValueError, match="components \\['cost'\\] are missing"):
    piece(
      CreditContext(
        jnp.zeros(2), rollout(toy, [1.0, 0], [1.0, 0]), piece.init(1)
      )
    )
  with pytest.raises(ValueError, match='one number for each'):
    credit.Lagrangian(components=PAIR, thresholds=(0.5,))
