"""Gradients at parameters that a shift has moved."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import score, update
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.method import Method, validate
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Shift

KEY = jax.random.key(5)


@piece
class FirstValue(Shift):
  """step * the sum of the values of trained tokens."""

  step: float = 0.1
  needs = ('values_after',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    total = (ctx.stats['values_after'] * ctx.traj.mask_BT).sum()
    return LossOut(self.step * total, {'policy/total': total})


def method(*shifts):
  """A reward model of recorded pairs."""
  return Method(
    losses=(
      *shifts,
      pref.PairLoss(score=pref.FinalValue(), link=pref.Sigmoid()),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )


@functools.cache
def batch(tiny):
  """Pairs from data."""
  traj = tiny.rollout().replace(advantages_BT=None, returns_BT=None)
  label = (jnp.arange(traj.weight_B.shape[0]) % 2 == 0).astype(jnp.float32)
  traj = traj.replace(
    reward_B=label,
    extras={'chosen_B': label, 'logged_B': jnp.ones_like(label)},
  )
  return make_batch(method().as_arrays(), traj, {})[0]


@functools.cache
def gradient(tiny, method, count=1):
  """A jitted params -> (gradient, loss, metrics) of `minibatch_gradient`."""
  forward, traj = Forward(model=tiny.CFG, microbatches=count), batch(tiny)

  def compute(params):
    *found, _ = update.minibatch_gradient(
      forward,
      params,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      {},
      reuse_scores=False,
    )
    return found

  return jax.jit(compute)


def assert_close(first, second):
  jax.tree.map(
    functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=5e-6),
    first,
    second,
  )


def test_gradient_is_taken_at_the_moved_parameters(tiny):
  """E1: against two steps by hand; the metric is of the parameters."""
  params = tiny.params()
  found, loss, metrics = gradient(tiny, method(FirstValue()))(params)
  forward, traj = Forward(model=tiny.CFG), batch(tiny)

  def total(params):
    stats = token_statistics(forward, params, traj, {'values_after'})
    return (stats['values_after'] * traj.mask_BT).sum()

  moved = jax.tree.map(
    lambda p, g: p + 0.1 * g, params, jax.jit(jax.grad(total))(params)
  )
  expected, other, _ = gradient(tiny, method())(moved)
  assert_close(found, expected)
  np.testing.assert_allclose(loss, other, rtol=1e-5)
  np.testing.assert_allclose(metrics['policy/total'], total(params), rtol=1e-4)
  plain, *_ = gradient(tiny, method())(params)
  gaps = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), found, plain)
  assert max(jax.tree.leaves(gaps)) > 1e-3


def test_step_zero_changes_nothing(tiny):
  """E0 of the gradient."""
  params = tiny.params()
  found, *_ = gradient(tiny, method(FirstValue(step=0.0)))(params)
  plain, *_ = gradient(tiny, method())(params)
  jax.tree.map(np.testing.assert_array_equal, found, plain)


def test_microbatches_change_nothing(tiny):
  """E1."""
  params = tiny.params()
  one = gradient(tiny, method(FirstValue()))(params)
  assert_close(one, gradient(tiny, method(FirstValue()), 2)(params))


def test_a_shift_is_no_loss():
  """A method of shifts only has nothing to minimise."""
  alone = Method(losses=(FirstValue(),), aggregation=TokenMean())
  with pytest.raises(ValueError, match='no loss of role "policy"'):
    validate(alone, group_size=2, has_value_head=True)


def test_rollouts_are_scored_first():
  """The forward pass of the update is one of other parameters."""
  assert score.scores_first(method(FirstValue()), 1)
  assert not score.scores_first(method(), 1)
