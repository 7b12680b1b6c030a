"""Losses on pairs in an update: microbatches, padding and order do nothing."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import score as score_lib
from rl_jax.learning import update
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward

KEY = jax.random.key(5)


def forward(tiny, count, rows=None):
  return Forward(model=tiny.CFG, microbatches=count, group_rows=rows)


@functools.cache
def batch(tiny, toy, name):
  """Pairs from data with log-probs of a reference; one has a dropped row."""
  traj = tiny.rollout().replace(advantages_BT=None, returns_BT=None)
  B = traj.weight_B.shape[0]
  label = jnp.arange(B) % 2 == 0
  traj = traj.replace(
    reward_B=label * (1.0 + jnp.arange(B)),  # gaps of other sizes
    extras={
      'chosen_B': label.astype(jnp.float32),
      'logged_B': jnp.ones(B),
      'mismatched_B': (jnp.arange(B) == 3).astype(jnp.float32),
    },
  )
  method = toy.get_method(name)
  params = {**tiny.params(), 'policies': {'reference': tiny.params(1)}}
  traj, _ = jax.jit(
    lambda params, traj: score_lib.score(
      forward(tiny, 1), params, traj, method, policy=False
    )
  )(params, traj)
  return make_batch(method.as_arrays(), traj, method.init_state(8))[0]


@functools.cache
def gradient(tiny, toy, name, count, rows=None, reuse_scores=False):
  """A jitted (params, traj) -> (gradient, loss, metrics).

  count: of microbatches. rows: of a group in each of them.
  """
  method = toy.get_method(name)

  def compute(params, traj):
    *found, _ = update.minibatch_gradient(
      forward(tiny, count, rows),
      params,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      method.init_state(8),
      reuse_scores=reuse_scores,
    )
    return found

  return jax.jit(compute)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
  'name',
  [
    *('aot', 'kto', 'bco'),  # of the whole minibatch: two passes
    *(
      pytest.param(name, marks=SLOW)
      for name in (
        *('dpo', 'orpo', 'wpo', 'ld_dpo'),
        *('mapl', 'gc_reward_model'),  # of the whole minibatch, too
      )
    ),
  ],
)
def test_microbatches_change_nothing(tiny, toy, name):
  """E1: loss, metrics and gradient, of rows that nobody has scored before."""
  traj = batch(tiny, toy, name)
  expected = gradient(tiny, toy, name, 1)(tiny.params(), traj)
  assert_equal(
    tiny, gradient(tiny, toy, name, 2)(tiny.params(), traj), expected
  )


@pytest.mark.parametrize('count', [2, 8])
@pytest.mark.parametrize(
  'name', ['dpo', *(pytest.param(x, marks=SLOW) for x in ('irpo', 'alphapo'))]
)
def test_microbatches_of_rows_change_nothing(tiny, toy, name, count):
  """E1: the two rows of a pair are in different microbatches, of losses that
  read one group only, scored before or not.
  """
  traj = batch(tiny, toy, name)
  scored = traj.replace(logp_old_BT=-0.5 * traj.mask_BT)
  whole = gradient(tiny, toy, name, 1)
  split = gradient(tiny, toy, name, count, rows=1)
  for rows in (traj, scored):
    got, expected = split(tiny.params(), rows), whole(tiny.params(), rows)
    assert_equal(tiny, got, expected)


def test_scores_of_foreign_rows_are_not_reused(tiny, toy):
  """E1: what the opponent gave to its rows is not what the policy gives."""
  traj = batch(tiny, toy, 'aot')
  foreign_B = 1.0 - traj.extras['chosen_B']
  extras = {**traj.extras, 'foreign_B': foreign_B, 'logged_B': 0.0 * foreign_B}
  traj, _ = score_lib.score(
    forward(tiny, 1),
    {**tiny.params(), 'policies': {'reference': tiny.params(1)}},
    traj.replace(extras=extras),
    toy.get_method('aot'),
    policy=True,
  )
  expected = gradient(tiny, toy, 'aot', 1)(tiny.params(), traj)
  compute = gradient(tiny, toy, 'aot', 2, reuse_scores=True)
  assert_equal(tiny, compute(tiny.params(), traj), expected)


def assert_equal(tiny, got, expected):
  """Gradients, losses and metrics."""
  grads, loss, metrics = expected
  assert optax.tree.norm(grads) > 1e-3
  assert tiny.relative_gap(got[0], grads) < 1e-5
  np.testing.assert_allclose(got[1], loss, rtol=1e-5, atol=1e-6)
  assert got[2].keys() == metrics.keys()
  for key, value in metrics.items():
    np.testing.assert_allclose(got[2][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
  'name',
  [
    'aot',
    *(pytest.param(x, marks=SLOW) for x in ('kto', 'bco', 'mapl')),
  ],
)
def test_padding_and_order_change_nothing(tiny, toy, name):
  """E1: wider rows, groups turned round, for losses over the minibatch."""
  traj, compute = batch(tiny, toy, name), gradient(tiny, toy, name, 2)
  grads, loss, _ = compute(tiny.params(), traj)
  turned = toy.permute(traj, [2, 0, 3, 1], [0, 1])
  for other in (turned, tiny.widen(traj, 2, 3)):
    got, got_loss, _ = compute(tiny.params(), other)
    assert tiny.relative_gap(got, grads) < 1e-5
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5, atol=1e-6)


def test_recorded_rows_have_no_behaviour_of_their_own(tiny, toy):
  """The log-probs of the score take its place, and there is no gap."""
  traj = batch(tiny, toy, 'dpo')
  _, _, metrics = gradient(tiny, toy, 'dpo', 1)(tiny.params(), traj)
  assert metrics['rollout/logp_gap_max'] == 0.0
  stats = {'logp': -traj.mask_BT, 'entropy': traj.mask_BT}
  half = traj.extras['logged_B'].at[0].set(0.0)
  traj = traj.replace(extras={**traj.extras, 'logged_B': half})
  scored, metrics = score_lib.with_scores(traj, stats)
  np.testing.assert_array_equal(
    scored.logp_behaviour_BT[1:], scored.logp_old_BT[1:]
  )
  assert metrics['rollout/logp_gap_max'] == 1.0  # of the sampled row
