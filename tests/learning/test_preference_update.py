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


def forward(tiny, count):
  return Forward(model=tiny.CFG, microbatches=count)


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
def gradient(tiny, toy, name, count):
  """A jitted (params, traj) -> (gradient, loss, metrics)."""
  method = toy.get_method(name)

  def compute(params, traj):
    *found, _ = update.minibatch_gradient(
      forward(tiny, count),
      params,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      method.init_state(8),
      reuse_scores=False,
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
  grads, loss, metrics = gradient(tiny, toy, name, 1)(tiny.params(), traj)
  assert optax.tree.norm(grads) > 1e-3
  got = gradient(tiny, toy, name, 2)(tiny.params(), traj)
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
