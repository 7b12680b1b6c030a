"""Rules by which named policies follow the trained one."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.method import Method
from rl_jax.pieces import shaping
from rl_jax.pieces.logits.policy_mixture import PolicyMixture
from rl_jax.pieces.policies import Average, CopyEvery, Frozen, RandomPast
from rl_jax.pieces.roles import LogitContext
from rl_jax.rollouts.wrappers import Against

OLD, NEW = {'w': jnp.array([1.0, 0.0])}, {'w': jnp.array([0.0, 2.0])}


def test_averages_by_hand():
  """0.4 of the old, 0.6 of the new; bfloat16 stays bfloat16."""
  mean = Average(decay=0.4, iterations=3).renewed(OLD, NEW)['w']
  np.testing.assert_allclose(mean, [0.4, 1.2], rtol=1e-6)
  half = {'w': OLD['w'].astype('bfloat16')}
  assert Average(decay=0.4).renewed(half, NEW)['w'].dtype == 'bfloat16'


def test_an_average_without_decay_is_a_copy():
  """E0: the soft update with weight 1 is the hard one."""
  soft, hard = Average(decay=0.0, iterations=2), CopyEvery(iterations=2)
  np.testing.assert_array_equal(soft.renewed(OLD, NEW)['w'], NEW['w'])
  for iteration in (1, 2, 3, 4):
    assert soft.due(iteration) == hard.due(iteration) == (iteration % 2 == 0)


def course(rule, rounds):
  """(the policy in every round, all that is kept) where theta_j = j."""
  kept, found = rule.start({'w': jnp.zeros(())}), []
  renew = jax.jit(rule.renewed)
  for number in range(1, rounds):
    kept = renew(kept, {'w': jnp.float32(number)})
    found.append(rule.current(kept)['w'].astype('int32'))
  return found, kept


def test_the_past_of_few_rounds_is_whole():
  """Round 1 has only theta_0; no round has its own policy; all places of the
  past fill in order, and draws differ by seed."""
  found, kept = course(RandomPast(iterations=1, most=8), 8)
  assert found[0] == 0 and all(j <= n for n, j in enumerate(found))
  assert [int(p['w']) for p in kept['past']] == list(range(8))
  assert int(kept['rounds']) == 7
  other, _ = course(RandomPast(iterations=1, most=8, seed=1), 8)
  assert found != other
  assert len({tuple(map(int, x)) for x in (found, other)}) == 2


def test_rounds_of_the_past_are_drawn_alike():
  """Round 6 of 300 runs with three copies: each of 0 .. 5 has chance 1/6."""

  def last(seed):  # of 300 rules in one program
    rule = RandomPast(iterations=1, most=3, seed=seed)
    return course(rule, 7)[0][-1]

  drawn = jax.vmap(last)(jnp.arange(300))
  counts = np.bincount(drawn, minlength=6)
  assert counts.sum() == 300 and len(counts) == 6
  assert (np.abs(counts - 50) < 4 * np.sqrt(300 * 5 / 36)).all(), counts


def test_one_copy_may_keep_the_first_policy():
  """Reduction: at most the first round, the past is the initial policy."""
  found, kept = course(RandomPast(iterations=1, most=1), 2)
  assert found == [0] and len(kept['past']) == 1
  assert RandomPast(iterations=2).copies == 5 and Frozen().copies == 1
  for iteration in (1, 2, 3, 4):
    due = RandomPast(iterations=2).due(iteration)
    assert due == CopyEvery(iterations=2).due(iteration)


def test_the_opponent_says_what_it_is_made_of():
  """The KL's reference stays frozen; with an average both are kept."""
  kl = (shaping.KLInReward(level='sequence'),)
  mixed = Method(shaping=kl, rollout=Against(coef=0.5))
  assert mixed.policies() == {'reference': Frozen()}
  average = Method(shaping=kl, rollout=Against(decay=0.9))
  rules = {'reference': Frozen(), 'average': Average(decay=0.9)}
  assert average.policies() == rules
  assert Method(rollout=Against(decay=0.9)).policies() == {
    'average': Average(decay=0.9)
  }


def test_the_average_is_the_opponent():
  """Its logits come by its name; without them it is the policy."""
  opponent = Against(decay=0.9).opponent
  assert opponent == PolicyMixture(coef=1.0, decay=0.9)
  own, other = jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 3.0]])
  np.testing.assert_array_equal(
    opponent(LogitContext(own, {'average': other})), other
  )
  np.testing.assert_array_equal(
    opponent(LogitContext(own, {'reference': other})), own
  )
