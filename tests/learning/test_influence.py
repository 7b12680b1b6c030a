"""Influence: exact identities, and the gradients of the update."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from configs.methods import clip_cov, dapo, grpo, hapo, ppo
from rl_jax.learning import influence, update
from rl_jax.learning.statistics import Forward
from rl_jax.pieces import credit, losses, regularizers, shaping, weights
from rl_jax.pieces.logits import TopK

KEY = jax.random.key(3)


@functools.partial(jax.jit, static_argnums=0)
def compared(forward, methods, frozen, old, params, traj, states):
  """(numbers of one minibatch of all rows, the rows of each method)."""
  whole = {**frozen, **old}
  rows = influence.scored(forward, whole, traj, methods)
  trajs = influence.batches(methods, rows, states)
  found = influence.compare(
    forward, frozen, params, methods, trajs, KEY, states
  )
  method = methods[influence.METHOD]
  changed = influence.rows_changed(forward, whole, rows, method)
  return {**found, 'influence/rows_changed': changed}, trajs


def measured(tiny, method, baseline=None, traj=None, microbatches=1):
  """(numbers, parts of an update): the weights have moved since sampling."""
  method = method.as_arrays()
  baseline = method if baseline is None else baseline.as_arrays()
  forward = Forward(
    model=tiny.CFG, temperature=tiny.TEMPERATURE, microbatches=microbatches
  )
  old, params = tiny.params(0), dict(tiny.params(0))
  params['model'] = jax.tree.map(
    lambda a, b: 0.9 * a + 0.1 * b, old['model'], tiny.params(1)['model']
  )
  frozen = {'policies': {'reference': tiny.params(1)}}
  states = influence.states_of(baseline, method.init_state(9), 9)
  found, trajs = compared(
    forward,
    influence.variants(method, baseline),
    frozen,
    old,
    params,
    tiny.rollout() if traj is None else traj,
    states,
  )
  found = {name.removeprefix('influence/'): x for name, x in found.items()}
  return found, (forward, frozen, params, trajs, states)


def changed(method, **fields):
  return dataclasses.replace(method, **fields)


def test_pieces_that_change_nothing(tiny):
  """Beside itself cosine and ratio are 1; so they are without such a piece.

  Weights of 1, a coefficient of 0 and the support of all tokens; the pieces
  after them keep their keys.
  """
  method = changed(
    grpo.get_method(),
    losses=(losses.PPOClip(), regularizers.EntropyBonus(coef=0.0)),
    weights=(
      weights.TruncatedImportance(),
      weights.EntropyQuantile(fraction=1.0),
      weights.ClipCovDrop(fraction=0.3, low=-9.0, high=9.0),
    ),
    logits=(TopK(k=11),),
  )
  # Sampled by the trainer's own weights: no mismatch to weigh.
  _, (*_, trajs, _) = measured(tiny, method)
  logp_BT = trajs[influence.METHOD].logp_old_BT
  traj = tiny.rollout().replace(logp_behaviour_BT=logp_BT)
  found, _ = measured(tiny, method, traj=traj)
  np.testing.assert_allclose([found['cos'], found['ratio']], 1.0, rtol=1e-6)
  assert found['rows_changed'] < 1e-6
  paths = {name.split('/')[0] for name in found if '/' in name}
  acting = {
    'credit.0.GroupCenter',
    'credit.1.GroupScale',
    'weights.2.ClipCovDrop',
  }
  nothing = {
    'losses.1.EntropyBonus',
    'weights.0.TruncatedImportance',
    'weights.1.EntropyQuantile',
  }
  assert paths == acting | nothing
  for path in sorted(paths):
    numbers = found[f'{path}/cos'], found[f'{path}/ratio']
    if path in nothing:
      np.testing.assert_allclose(numbers, 1.0, rtol=1e-6)
      assert found[f'{path}/tokens'] == 0
    else:
      assert max(abs(1 - x) for x in numbers) > 1e-3
      assert found[f'{path}/tokens'] > 0.05


@pytest.mark.parametrize('microbatches', [1, 4])
def test_of_bfloat16_weights(tiny, microbatches):
  """To rounding of float32; in bfloat16 it would be 1.008 beside itself."""
  half = types.SimpleNamespace(
    CFG=dataclasses.replace(tiny.CFG, param_dtype='bfloat16'),
    TEMPERATURE=tiny.TEMPERATURE,
    params=lambda seed: optax.tree.cast(tiny.params(seed), jnp.bfloat16),
    rollout=tiny.rollout,
  )
  found, _ = measured(half, grpo.get_method(), microbatches=microbatches)
  np.testing.assert_allclose([found['cos'], found['ratio']], 1.0, rtol=1e-5)


def test_constant_factors_clips_and_mismatch(tiny):
  """A factor is seen in the ratio only; of zeros one or both; clips; TIS."""

  def method(scale=1.0, clip=99.0):
    return changed(
      grpo.get_method(),
      shaping=(shaping.Affine(scale=scale),),
      credit=(credit.GroupCenter(),),
      losses=(losses.PPOClip(clip_low=min(clip, 1.0), clip_high=clip),),
      weights=(weights.TruncatedImportance(),),
    )

  def numbers(x):
    return (float(x['cos']), float(x['ratio']))

  found, _ = measured(tiny, method(2.0), method())
  assert numbers(found) == pytest.approx((1.0, 2.0), rel=1e-5)
  assert found['shaping.0.Affine/cos'] == pytest.approx(1.0, rel=1e-5)
  assert found['shaping.0.Affine/ratio'] == pytest.approx(2.0, rel=1e-5)
  assert found['tokens_stopped'] == 0
  # The sampler's log-probs are 0 in this rollout: all weights are below 1.
  name = 'weights.0.TruncatedImportance/'
  assert found[name + 'tokens'] > 0.4 and found[name + 'ratio'] < 0.9
  assert numbers(measured(tiny, method(), method(0.0))[0]) == (0.0, 0.0)
  assert numbers(measured(tiny, method(0.0), method(0.0))[0]) == (1.0, 1.0)
  found, _ = measured(tiny, method(clip=0.0))
  assert 0.2 < found['tokens_stopped'] < 0.8


def check_gradients(tiny, microbatches):
  """E1: cosine and ratio from `minibatch_gradient`, with a piece that draws."""

  def dropping(fraction):
    drop = weights.ClipCovDrop(fraction=fraction, low=-9.0, high=9.0)
    return changed(clip_cov.get_method(), weights=(drop,))

  method, baseline = dropping(0.3), dropping(0.9)
  found, (forward, frozen, params, trajs, states) = measured(
    tiny, method, baseline, microbatches=microbatches
  )
  gradient = jax.jit(
    functools.partial(update.minibatch_gradient, forward, reuse_scores=False)
  )

  def flat(method, traj):
    batch = update.Batch(
      frozen=frozen, method=method.as_arrays(), traj=traj, key=KEY
    )
    grads = gradient(params, batch, states)[0]['model']
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(grads)])

  g = flat(method, trajs[influence.METHOD])
  b = flat(baseline, trajs[influence.BASELINE])
  norms = np.linalg.norm(g), np.linalg.norm(b)
  cos = g @ b / norms[0] / norms[1]
  assert cos < 0.999
  np.testing.assert_allclose(found['cos'], cos, rtol=1e-5)
  np.testing.assert_allclose(found['ratio'], norms[0] / norms[1], rtol=1e-5)


def test_gradients_are_those_of_the_update(tiny):
  check_gradients(tiny, 2)


@pytest.mark.slow
def test_gradients_in_one_piece(tiny):
  check_gradients(tiny, 1)


@pytest.mark.slow
@pytest.mark.parametrize('module', [hapo, ppo])
def test_a_method_beside_itself(tiny, module):
  """Also those with a state, and with values."""
  found, _ = measured(tiny, module.get_method())
  np.testing.assert_allclose([found['cos'], found['ratio']], 1.0, rtol=1e-6)


@pytest.mark.slow
def test_transforms_change_rows(tiny):
  """Only the most likely token: most rows would be others."""
  found, _ = measured(tiny, changed(grpo.get_method(), logits=(TopK(k=1),)))
  assert 0.2 < found['rows_changed'] < 1


def test_nothing_in_the_place_of_a_piece():
  """Pieces may be left out; the only policy loss may not."""
  method = dapo.get_method()
  assert set(influence.variants(method, method)) == {
    'method',
    'baseline',
    'shaping.0.OverlongPenalty',
    'credit.0.GroupCenter',
    'credit.1.GroupScale',
    'group_filter.ZeroVariance',
  }
