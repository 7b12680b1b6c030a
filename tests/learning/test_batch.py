"""From rewards to advantages."""

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.batch import make_batch
from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection, shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut

MASK = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])


@struct.dataclass(kw_only=True)
class RunningMax(Credit):
  """Subtracts the largest reward seen so far: a stateful piece."""

  def init(self, num_prompts):
    """Nothing seen."""
    return jnp.float32(0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, state = ctx.credit, ctx.state
    state = jnp.maximum(state, credit_B.max())
    return CreditOut(credit_B - state, state)


def method(**pieces):
  """Any method with the given pieces."""
  return Method(losses=(losses.Reinforce(),), aggregation=TokenMean(), **pieces)


def batch(toy, pieces, reward, **fields):
  """make_batch on two groups of two rows."""
  traj = toy.trajectories(
    MASK, group_size=2, reward_B=np.array(reward), **fields
  )
  return make_batch(pieces, traj, pieces.init_state(3))


def test_advantages_are_broadcast_over_the_mask(toy):
  """Centred rewards (1/2, -1/2), 0 on padding."""
  traj, _, _ = batch(
    toy, method(credit=(credit.GroupCenter(),)), [1.0, 0.0, 3.0, 3.0]
  )
  np.testing.assert_array_equal(
    traj.advantages_BT, [[0.5, 0.5, 0], [-0.5, 0, 0], [0, 0, 0], [0, 0, 0]]
  )
  assert traj.returns_BT is None


def test_a_reward_that_is_not_a_number_costs_its_own_row_only(toy):
  """The other row of its group has nothing to compare with."""
  pieces = method(credit=(credit.GroupCenter(), credit.GroupScale()))
  traj, _, metrics = batch(toy, pieces, [1.0, np.nan, 1.0, 0.0])
  np.testing.assert_array_equal(traj.valid_B, [1, 0, 1, 1])
  np.testing.assert_array_equal(traj.weight_B, [1, 0, 1, 1])
  np.testing.assert_array_equal(traj.advantages_BT[:2], 0)
  # 1/2 over a standard deviation of 1 / sqrt(2).
  np.testing.assert_allclose(traj.advantages_BT[2, 0], 0.707106, rtol=1e-4)
  np.testing.assert_allclose(metrics['reward/mean'], 2 / 3, rtol=1e-6)
  np.testing.assert_allclose(metrics['rollout/valid_fraction'], 0.75)
  # A group of one row has no deviation.
  np.testing.assert_allclose(metrics['reward/group_std'], 0.5**0.5, rtol=1e-6)


def test_metrics_by_hand(toy):
  """Rewards 1, 0, 3, 3: mean 7/4, variance (9 + 49 + 25 + 25) / 64."""
  _, _, metrics = batch(
    toy,
    method(),
    [1.0, 0.0, 3.0, 3.0],
    rewards={'outcome': np.array([1.0, 0.0, 1.0, 1.0])},
    finished_B=np.array([True, True, True, False]),
  )
  np.testing.assert_allclose(metrics['reward/mean'], 1.75)
  np.testing.assert_allclose(metrics['reward/std'], 1.299038, rtol=1e-6)
  np.testing.assert_allclose(metrics['reward/outcome'], 0.75)
  np.testing.assert_allclose(metrics['reward/zero_variance_fraction'], 0.5)
  # 1 / sqrt(2) and 0, of two groups.
  np.testing.assert_allclose(metrics['reward/group_std'], 0.5**1.5, rtol=1e-6)
  np.testing.assert_allclose(metrics['rollout/length'], 1.75)
  np.testing.assert_allclose(metrics['rollout/finished_fraction'], 0.75)
  np.testing.assert_allclose(metrics['batch/trained_tokens'], 7.0)


def test_rewards_of_records_are_not_those_of_samples(toy):
  """A group of samples, 1 and 0, beside one of records; records only."""
  fields = {'rewards': {'outcome': np.array([1.0, 0.0, 1.0, 1.0])}}
  expected = {}
  for logged in ([0, 0, 1, 1], [1, 1, 1, 1]):
    fields['extras'] = {'logged_B': np.array(logged, np.float32)}
    _, _, metrics = batch(toy, method(), [1.0, 0.0, 3.0, 3.0], **fields)
    expected[sum(logged)] = [
      float(metrics[f'reward/{name}'])
      for name in ('mean', 'std', 'outcome', 'zero_variance_fraction')
    ]
  np.testing.assert_allclose(expected[2], [0.5, 0.5, 0.5, 0.0])
  np.testing.assert_allclose(expected[4], [1.75, 1.299038, 0.75, 0.5], 1e-6)


def test_the_filter_sees_rewards_before_shaping(toy):
  """Lengths differ in group 2, so shaping would have kept it alive."""
  pieces = method(
    shaping=(shaping.OverlongPenalty(max_tokens=3.0, buffer_tokens=3.0),),
    group_filter=selection.ZeroVariance(),
  )
  traj, _, metrics = batch(toy, pieces, [1.0, 0.0, 1.0, 1.0])
  np.testing.assert_array_equal(traj.weight_B, [1, 1, 0, 0])
  np.testing.assert_array_equal(traj.valid_B, [1, 1, 1, 1])
  np.testing.assert_allclose(metrics['batch/kept_group_fraction'], 0.5)
  # Lengths 2, 1, 3, 1 cost 2/3, 1/3, 1, 1/3; the record keeps the raw reward.
  np.testing.assert_allclose(
    traj.advantages_BT[:, 0], [1 / 3, -1 / 3, 0, 2 / 3], rtol=1e-5
  )
  np.testing.assert_array_equal(traj.reward_B, [1, 0, 1, 1])


@pytest.mark.parametrize('trained', [False, True])
def test_untrained_opponents_count_in_shaping_alone(toy, trained):
  """Own rows 2 and 0 against 1 and 1 win 1 and 0 of both: 1/2 and -1/2.

  Trained rows of an opponent, which win 1/2, are samples like any other.
  """
  mask = np.ones((4, 1))
  traj = toy.trajectories(
    mask,
    group_size=4,
    reward_B=np.array([2.0, 0.0, 1.0, 1.0]),
    weight_B=np.array([1.0, 1.0, trained, trained]),
    extras={'opponent_B': np.array([0.0, 0.0, 1.0, 1.0])},
  )
  pieces = method(
    shaping=(shaping.WinRate(against='opponent'),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
  )
  traj, _, metrics = make_batch(pieces, traj, pieces.init_state(1))
  # The deviation of 1, 0 is .707107; with 1/2, 1/2 it is .408248.
  scale = 0.408248 if trained else 0.707107
  expected = np.array([0.5, -0.5, 0.0, 0.0]) / scale
  np.testing.assert_allclose(traj.advantages_BT[:, 0], expected, rtol=1e-5)
  np.testing.assert_array_equal(traj.valid_B, [1, 1, trained, trained])
  assert metrics['rollout/valid_fraction'] == 1.0


def test_batch_statistics_leave_filtered_groups_out(toy):
  """Whitening comes after the filter: tokens 1, 1, 0 of group 1 only."""
  pieces = method(
    credit=(credit.Whiten(),), group_filter=selection.ZeroVariance()
  )
  traj, _, _ = batch(toy, pieces, [1.0, 0.0, 9.0, 9.0])
  # Mean 2/3, sample variance 1/3: (1/3) / .57735 and (-2/3) / .57735.
  np.testing.assert_allclose(
    traj.advantages_BT[:2, 0], [0.57735, -1.154701], rtol=1e-5
  )
  np.testing.assert_array_equal(traj.advantages_BT[2:], 0)


def test_value_targets_use_the_shaped_reward(toy):
  """Reward 1 less 2/3 for length 2 of 3; V = 0, so the return is 1/3."""
  pieces = method(
    shaping=(shaping.OverlongPenalty(max_tokens=3.0, buffer_tokens=3.0),),
    credit=(credit.GAE(), credit.Whiten()),
    value_target=credit.LambdaReturn(lam=1.0),
  )
  traj, _, _ = batch(
    toy, pieces, [1.0, 0.0, 1.0, 1.0], values_BT=np.zeros((4, 3))
  )
  np.testing.assert_allclose(traj.returns_BT[0], [1 / 3, 1 / 3, 0], rtol=1e-5)


def test_masked_statistics_are_zeroed(toy):
  """Garbage on padding does not survive."""
  garbage = np.full((4, 3), np.nan)
  traj, _, _ = batch(
    toy,
    method(),
    np.zeros(4),
    logp_old_BT=np.where(MASK, -1.0, garbage),
    entropy_BT=np.where(MASK, 1.0, garbage),
  )
  np.testing.assert_array_equal(traj.logp_old_BT, -1.0 * MASK)
  np.testing.assert_array_equal(traj.entropy_BT, MASK)


def test_states_are_threaded_by_path(toy):
  """Two running maxima of 3 and then of 0 (all rewards minus the maximum)."""
  pieces = method(credit=(RunningMax(), RunningMax()))
  traj, state, _ = batch(toy, pieces, [1.0, 0.0, 3.0, 3.0])
  assert state == {'credit.0.RunningMax': 3.0, 'credit.1.RunningMax': 0.0}
  np.testing.assert_array_equal(traj.advantages_BT[:, 0], [-2, -3, 0, 0])
  again = traj.replace(reward_B=jnp.zeros(4))
  traj, state, _ = jax.jit(make_batch)(pieces, again, state)
  assert state['credit.0.RunningMax'] == 3.0
  np.testing.assert_array_equal(traj.advantages_BT[:, 0], [-3, -3, -3, -3])


def test_a_piece_per_row_after_one_per_token_is_named(toy):
  """Rewards with a KL term per token cannot be centred within the group."""
  pieces = method(
    shaping=(shaping.KLInReward(),), credit=(credit.GroupCenter(),)
  )
  zeros = np.zeros(MASK.shape, np.float32)
  with pytest.raises(ValueError, match=r'credit\.0\.GroupCenter takes one'):
    batch(toy, pieces, [1.0, 0, 0, 0], logp_old_BT=zeros, logp_ref_BT=zeros)
