"""The mask of DeepSeek-V3.2 on bad responses that the policy has left."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import validate
from rl_jax.pieces import losses, regularizers, weights
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
# log pi_old - log pi: means .6, .4, .6 and -.6 of the rows.
DISTANCE = np.array([[1.0, 0.2], [0.5, 0.3], [0.2, 1.0], [-0.2, -1.0]])
ADVANTAGE = np.array([[-1.0], [-1.0], [2.0], [-3.0]]) * np.ones((4, 2))
KEPT = [[0, 0], [1, 1], [1, 1], [1, 1]]


def rows(toy, mask=None, **fields):
  """(rows whose old log-probs are -1, statistics of the policy)."""
  old = np.full(DISTANCE.shape, -1.0)
  fields = {'logp_old_BT': old, 'advantages_BT': ADVANTAGE, **fields}
  mask = np.ones(DISTANCE.shape) if mask is None else np.asarray(mask)
  traj = toy.trajectories(mask, group_size=4, **fields)
  return traj, {'logp': jnp.asarray(old - DISTANCE, jnp.float32)}


def evaluate(toy, piece=None, mask=None, **fields):
  """(weights, metrics)."""
  traj, stats = rows(toy, mask, **fields)
  return (piece or weights.OffPolicyMask())(LossContext(stats, traj, KEY))[:2]


def test_by_hand(toy):
  """Above .5 are rows 0 and 2; row 2 has a positive advantage."""
  weight, metrics = evaluate(toy)
  np.testing.assert_array_equal(weight, KEPT)
  np.testing.assert_array_equal(
    metrics['policy/off_policy_fraction'], 1 - np.array(KEPT)
  )
  weight, _ = evaluate(toy, weights.OffPolicyMask(threshold=0.3))
  np.testing.assert_array_equal(weight, [[0, 0], [0, 0], [1, 1], [1, 1]])


def test_a_dropped_row_has_no_gradient(toy):
  """Rows that are left have PPO's loss; no gradient comes through the mask."""
  traj, stats = rows(toy)

  def total(logp):
    weight = weights.OffPolicyMask()(
      LossContext({'logp': logp}, traj, KEY)
    ).value
    loss = losses.PPOClip()(LossContext({'logp': logp}, traj, KEY)).value
    return (jax.lax.stop_gradient(weight) * loss).sum()

  pushed = jax.grad(total)(stats['logp'])
  plain = jax.grad(
    lambda x: losses.PPOClip()(LossContext({'logp': x}, traj, KEY)).value.sum()
  )
  expected = np.array(KEPT) * plain(stats['logp'])
  np.testing.assert_array_equal(pushed, expected)


def test_the_mean_is_over_trained_tokens(toy):
  """Without its second token row 1 has .5, which does not exceed .5; row 0 has
  1 with its first and .2 with its second token."""
  mask = [[0, 1], [1, 0], [1, 1], [1, 1]]
  weight, _ = evaluate(toy, mask=mask)
  np.testing.assert_array_equal(weight, 1.0)
  weight, _ = evaluate(toy, mask=[[1, 0], [1, 0], [1, 1], [1, 1]])
  np.testing.assert_array_equal(weight[0], [0, 1])  # masked: no loss


def test_of_tokens_with_their_own_advantages(toy):
  """The paper's M_t: in a row that is far, those with A < 0 drop."""
  advantage = np.array([[-1.0, 1.0], [-1, 1], [0, -1], [-1, -1]])
  weight, _ = evaluate(toy, advantages_BT=advantage)
  np.testing.assert_array_equal(weight, [[0, 1], [1, 1], [1, 0], [1, 1]])


def test_the_sampler_may_be_what_is_left(toy):
  """It drew with half a nat more than the trainer had: means 1.1, .9, 1.1, -.1.

  Without mismatch both are equal, E0.
  """
  piece = weights.OffPolicyMask(old='behaviour')
  old = np.full(DISTANCE.shape, -1.0)
  weight, _ = evaluate(toy, piece, logp_behaviour_BT=old + 0.5)
  np.testing.assert_array_equal(weight, [[0, 0], [0, 0], [1, 1], [1, 1]])
  weight, _ = evaluate(toy, piece, logp_behaviour_BT=old)
  np.testing.assert_array_equal(weight, KEPT)


@pytest.mark.parametrize('threshold', [0.0, 0.5])
def test_before_the_first_update_nothing_is_dropped(toy, threshold):
  """E0: the policy is the old one."""
  traj, _ = rows(toy)
  piece = weights.OffPolicyMask(threshold=threshold)
  weight = piece(LossContext({'logp': traj.logp_old_BT}, traj, KEY)).value
  np.testing.assert_array_equal(weight, 1.0)


def test_only_the_sign_of_the_advantage_counts(toy):
  """E0; and the order of the tokens does not."""
  weight, _ = evaluate(toy, advantages_BT=0.01 * ADVANTAGE)
  np.testing.assert_array_equal(weight, KEPT)
  traj, stats = rows(toy)
  turned = {'logp': stats['logp'][:, ::-1]}
  weight = weights.OffPolicyMask()(LossContext(turned, traj, KEY)).value
  np.testing.assert_array_equal(weight, KEPT)


def test_the_masks_are_added_on_the_command_line():
  """To any method, with the KL term in the place of the plain one."""
  config = configuration.build(
    'bandit',
    'grpo',
    ['method.losses.KLPenalty=CorrectedKL(coef=0.01)'],
    [
      'method.weights=OffPolicyMask(threshold=0.3)',
      "method.weights=DivergenceMask(limit=0.02, estimator='k2')",
    ],
  )
  validate(config)
  assert config.method.weights == (
    weights.OffPolicyMask(threshold=0.3),
    weights.DivergenceMask(limit=0.02, estimator='k2'),
  )
  assert regularizers.CorrectedKL(coef=0.01) in config.method.losses
