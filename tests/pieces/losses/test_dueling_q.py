"""Action values made of logits, and their targets."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.logits import TopP
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import CreditContext, LossContext
from rl_jax.pieces.statistics import Chunk, GreedyGap

KEY = jax.random.key(0)
ONE = np.ones((1, 2))


def gap(logits, other=None, token=0):
  """The gap at one place."""

  def place(x):
    return jnp.asarray(x, jnp.float32)[None, None]

  chunk = Chunk(
    logits_BCV=place(logits),
    token_BC=jnp.full((1, 1), token),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={} if other is None else {'reference': place(other)},
  )
  return float(GreedyGap('' if other is None else 'reference')(chunk)[0, 0])


def target(toy, reward=1.0, gap_BT=((-9.0, -2.0),), mask=ONE, **fields):
  """Returns [1, 2] with values 5 and 3, and residuals of 0.5."""
  traj = toy.trajectories(
    mask,
    group_size=1,
    values_BTH=np.array([[[5.0, 0.5], [3.0, 0.5]]]),
    extras={'reference_gap': np.asarray(gap_BT)},
  )
  fields = {'alpha': 1.0, 'gamma': 0.9, 'cap': 9.0, 'num_summed': 1} | fields
  reward_B = jnp.full(1, reward)
  return credit.ConservativeTarget(**fields)(
    CreditContext(reward_B, traj)
  ).value


def loss(toy, reward=0.0, logged=0.0, **fields):
  """l [1, 2] of values 1, gaps -0.5 and 0, logp -1, returns 0.25 and 1."""
  traj = toy.trajectories(
    ONE,
    group_size=1,
    returns_BT=np.array([[0.25, 1.0]]),
    reward_B=np.array([reward]),
    extras={'logged_B': np.array([logged])},
  )
  stats = {
    'value_heads': jnp.ones((1, 2, 1)),
    'drawn_gap': jnp.array([[-0.5, 0.0]]),
    'logp': -jnp.ones((1, 2)),
  }
  return losses.DuelingQ(**fields)(LossContext(stats, traj, KEY)).value


def test_gaps_by_hand():
  """The gap of the drawn token and of the reference's favourite; 0 for
  its own.
  """
  assert gap([1.0, 3.0]) == -2.0 and gap([1.0, 3.0], token=1) == 0.0
  assert gap([1.0, 3.0], other=[0.1, 0.0]) == -2.0
  assert gap([1.0, 3.0], other=[0.0, 0.1], token=0) == 0.0


def test_targets_by_hand(toy):
  """Q(s') = (1, 3): the reference's choice has 0.9 * 1, the best 0.9 * 3."""
  np.testing.assert_allclose(target(toy), [[0.9, 1.0]], rtol=1e-6)
  # Q-learning: the reference is the policy.
  np.testing.assert_allclose(target(toy, gap_BT=0 * ONE), [[2.7, 1.0]], 1e-6)
  np.testing.assert_allclose(target(toy, cap=0.5), [[0.45, 1.0]], rtol=1e-6)
  np.testing.assert_allclose(target(toy, alpha=0.5), [[1.8, 1.0]], rtol=1e-6)
  np.testing.assert_allclose(target(toy, num_summed=2), [[1.35, 1.0]], 1e-6)


def test_without_a_gap_it_is_the_one_step_return(toy):
  """E1: LambdaReturn(lam=0), also with a token of the environment."""
  rows = toy.trajectories(
    [[1, 0, 1, 1, 0]],
    group_size=1,
    values_BT=np.array([[0.3, 7.0, -0.2, 0.6, 7.0]]),
    extras={'reference_gap': np.zeros((1, 5))},
  )
  rows = rows.replace(values_BTH=rows.values_BT[..., None])
  piece = credit.ConservativeTarget(alpha=1.0, gamma=0.8, num_summed=1)
  own = piece(CreditContext(jnp.ones(1), rows)).value
  other = credit.LambdaReturn(gamma=0.8, lam=0.0)(
    CreditContext(jnp.ones(1), rows)
  ).value
  np.testing.assert_allclose(own, other, rtol=1e-6)


def test_loss_by_hand(toy):
  """(1 - .5 - .25)^2 and 0; right data add .1 * .5 + .5 * 1, and .5."""
  np.testing.assert_allclose(loss(toy), [[0.0625, 0.0]])
  np.testing.assert_allclose(
    loss(toy, reward=1.0, logged=1.0), [[0.6125, 0.5]], rtol=1e-6
  )
  np.testing.assert_allclose(loss(toy, alpha=2.0), [[0.0625, 0.0]])
  for reward, logged in ((1.0, 0.0), (0.0, 1.0)):  # a sample, a wrong solution
    np.testing.assert_allclose(loss(toy, reward, logged), loss(toy))


def moved(toy, stage):
  """A right row of data: gradients of V_1, V_2, A and logp by stage."""
  traj = toy.trajectories(
    ONE,
    group_size=1,
    returns_BT=np.array([[0.25, 1.0]]),
    reward_B=np.ones(1),
    extras={'logged_B': np.ones(1)},
  )

  def total(heads_BTH, gap_BT, logp_BT):
    stats = {'value_heads': heads_BTH, 'drawn_gap': gap_BT, 'logp': logp_BT}
    return losses.DuelingQ(stage=stage)(
      LossContext(stats, traj, KEY)
    ).value.sum()

  heads = jnp.array([[[0.75, 0.25], [1.0, 0.0]]])
  gap, logp = jnp.array([[-0.5, 0.0]]), -jnp.ones((1, 2))
  value, (heads, gap, logp) = jax.value_and_grad(total, (0, 1, 2))(
    heads, gap, logp
  )
  return value, heads[..., 0], heads[..., 1], gap, logp


def test_stages_by_hand(toy):
  """Q = .75 + .25 - .5 and 1 + 0 + 0; errors .25 and 0, d adds .1 * .5 + 1.

  In the first stage the error moves V_1 only, in the second V_2 and logits,
  d/dA = 2 * .25 - .1, d/dlogp = -.5. Of one stage Q = .75 - .5, without V_2.
  """
  value, first, second, gap, logp = moved(toy, 'values')
  np.testing.assert_allclose(value, 0.0625)
  np.testing.assert_allclose(first, [[0.5, 0.0]])
  assert not (second.any() or gap.any() or logp.any())
  value, first, second, gap, logp = moved(toy, 'residual')
  np.testing.assert_allclose(value, 0.0625 + 0.05 + 1.0, rtol=1e-6)
  assert not first.any()
  np.testing.assert_allclose(second, [[0.5, 0.0]])
  np.testing.assert_allclose(gap, [[0.4, -0.1]], rtol=1e-5)
  np.testing.assert_allclose(logp, [[-0.5, -0.5]])
  value, first, second, *_ = moved(toy, 'joint')
  np.testing.assert_allclose(value, 0.0 + 0.05 + 1.0, rtol=1e-6)
  assert not second.any()


def test_stages_need_two_outputs():
  """The sum of both is V in the targets, too."""
  for stage, outputs in (('values', 2), ('residual', 2), ('joint', 1)):
    method = Method(
      value_target=credit.ConservativeTarget(),
      losses=(losses.DuelingQ(stage=stage),),
      aggregation=TokenMean(),
    )
    assert method.num_values == outputs
    assert method.resolved().value_target.num_summed == outputs


def test_both_share_alpha():
  """Taken from the loss; another one, or none, is an error."""
  method = Method(
    value_target=credit.ConservativeTarget(),
    losses=(losses.DuelingQ(alpha=0.3),),
    aggregation=TokenMean(),
  )
  assert method.resolved().value_target.alpha == 0.3
  assert method.resolved().value_target.num_summed == 1
  for changed in (
    {'losses': (losses.PPOClip(),)},
    {'value_target': credit.ConservativeTarget(alpha=0.2)},
  ):
    with pytest.raises(ValueError, match='DuelingQ of the same'):
      dataclasses.replace(method, **changed).resolved()
  with pytest.raises(ValueError, match=r'method\.logits'):
    dataclasses.replace(method, logits=(TopP(),)).resolved()
  with pytest.raises(ValueError, match=r'method\.value_target'):
    losses.DuelingQ().check(
      CheckContext(method=dataclasses.replace(method, value_target=None))
    )
