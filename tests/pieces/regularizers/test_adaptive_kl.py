"""The adaptive coefficient by hand, and that a run carries it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import update
from rl_jax.learning.state import fresh_state
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)


def evaluate(toy, piece, gaps, state):
  """(loss, metrics, next state); gaps: logp - logp_ref of one row's tokens."""
  logp = jnp.asarray([gaps], jnp.float32)
  traj = toy.trajectories(
    np.ones(logp.shape), group_size=1, logp_ref_BT=np.zeros(logp.shape)
  )
  return piece(LossContext({'logp': logp}, traj, KEY, state=state))


@pytest.mark.parametrize(
  ('gap', 'beta'),
  [
    # k2 = gap^2 / 2 is .02, .011 and .005 nats: errors of 1, .1 and -.5 at a
    # target of .01, the first and the last cut at .2.
    (0.2, 0.5 * 1.02),
    (0.022**0.5, 0.5 * 1.01),
    (0.1, 0.5 * 0.98),
  ],
)
def test_the_next_coefficient_by_hand(toy, gap, beta):
  """beta (1 + .1 error) from beta = .5; the loss has the old one."""
  piece = regularizers.AdaptiveKL(start=0.5, target=0.01, estimator='k2')
  state = piece.init(3)
  loss, metrics, after = evaluate(toy, piece, [gap, gap], state)
  np.testing.assert_allclose(loss, [[0.25 * gap**2] * 2], rtol=1e-6)
  np.testing.assert_allclose(metrics['policy/kl_coef'], 0.5)
  np.testing.assert_allclose(after['beta'], beta, rtol=1e-5)


def test_without_a_trained_token_it_stays(toy):
  """Far from the target, of which nothing is known here."""
  piece = regularizers.AdaptiveKL(start=0.5)
  traj = toy.trajectories(
    np.ones((1, 2)),
    group_size=1,
    logp_ref_BT=np.zeros((1, 2)),
    weight_B=np.zeros(1),
  )
  stats = {'logp': jnp.zeros((1, 2))}
  _, _, after = piece(LossContext(stats, traj, KEY, state=piece.init(3)))
  assert after['beta'] == 0.5


def test_without_gain_it_is_the_plain_penalty(toy):
  """E0: values and gradients of KLPenalty; beta stays."""
  adaptive = regularizers.AdaptiveKL(start=0.3, gain=0.0)
  plain = regularizers.KLPenalty(coef=0.3)
  gaps, state = [0.4, -0.2], adaptive.init(0)
  loss, _, after = evaluate(toy, adaptive, gaps, state)
  logp = jnp.asarray([gaps], jnp.float32)
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, logp_ref_BT=np.zeros((1, 2))
  )
  np.testing.assert_array_equal(
    loss, plain(LossContext({'logp': logp}, traj, KEY)).value
  )
  assert after['beta'] == state['beta']


@pytest.mark.parametrize('microbatches', [1, 2])
def test_an_update_carries_the_coefficient(tiny, microbatches):
  """E1 over microbatches: two steps against the rule, from whole minibatches;
  a step that is skipped leaves it unchanged."""
  piece = regularizers.AdaptiveKL(start=0.5, target=1e-4)
  method = Method(losses=(losses.PPOClip(), piece), aggregation=TokenMean())
  traj = tiny.rollout()
  traj = traj.replace(
    logp_old_BT=traj.logp_behaviour_BT,
    logp_ref_BT=traj.logp_behaviour_BT - 0.1 * traj.mask_BT,
    advantages_BT=traj.mask_BT,
  )
  optimizer = optax.sgd(0.0)
  state = fresh_state(method, optimizer, tiny.params(), 0)
  step = jax.jit(
    lambda state, traj: update.update_minibatch(
      Forward(model=tiny.CFG, microbatches=microbatches),
      state,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      jnp.arange(traj.num_prompts),
      optimizer=optimizer,
      reuse_scores=False,
    )
  )
  path = 'losses.1.AdaptiveKL'
  for expected in (0.5 * 1.02, 0.5 * 1.02**2):  # far above the target
    state, metrics = step(state, traj)
    beta = state.method_state[path]['beta']
    np.testing.assert_allclose(beta, expected, rtol=1e-6)
  np.testing.assert_allclose(metrics['policy/kl_coef'], 0.5 * 1.02, rtol=1e-6)
  broken = traj.replace(advantages_BT=jnp.nan * traj.mask_BT)
  after, _ = step(state, broken)
  assert after.method_state[path]['beta'] == beta and after.skipped == 1
