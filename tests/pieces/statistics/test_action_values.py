"""Values of every token: from the head, of copies, and when acting."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.methods import ilql
from experiments.flags import configuration
from rl_jax import models
from rl_jax.config import validate
from rl_jax.decoding.generate import generate, start_trajectories
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.learning import model_checks, statistics
from rl_jax.models import params as params_lib
from rl_jax.pieces.logits import ActionValueTilt
from rl_jax.pieces.roles import LogitContext
from rl_jax.pieces.statistics import action_values
from rl_jax.pieces.statistics.action_values import (
  ActionNormalisers,
  ActionValues,
)

OUTPUTS = 1 + 2 * 11


def made(tiny):
  """A model with values of every token."""
  cfg = dataclasses.replace(tiny.CFG, num_values=OUTPUTS)
  params = params_lib.init_params(cfg, jax.random.key(0))
  head = np.random.default_rng(0).normal(size=(OUTPUTS, cfg.width))
  params['value_head']['w'] = jnp.asarray(head, jnp.float32)
  return cfg, params


def test_what_is_read_are_outputs_of_the_head(tiny):
  """E1: of the policy and of a copy; the copy has no gradient."""
  cfg, params = made(tiny)
  traj, forward = tiny.rollout(), statistics.Forward(model=cfg)
  copy = jax.tree.map(lambda x: 0.5 * x, params)
  needs = (ActionValues(), ActionValues('targets'), ActionNormalisers())

  def read(params, copy):
    given = {**params, 'policies': {'targets': copy}}
    return statistics.token_statistics(forward, given, traj, needs)

  found = read(params, copy)
  for name, tree in (('', params), ('_targets', copy)):
    hidden = statistics.states_before(forward, tree, traj)
    outputs = models.all_values(tree, hidden)
    value, q = (
      outputs[..., 0],
      outputs[..., 1:].reshape(*hidden.shape[:2], 2, 11),
    )
    picked = jnp.take_along_axis(q, traj.response_BT[..., None, None], axis=-1)[
      ..., 0
    ]
    expected = jnp.concatenate([value[..., None], picked], axis=-1)
    expected *= traj.mask_BT[..., None]
    np.testing.assert_allclose(
      found['action_values' + name], expected, rtol=1e-5, atol=1e-5
    )
    if not name:
      total = jax.nn.logsumexp(q, axis=-1) * traj.mask_BT[..., None]
      np.testing.assert_allclose(
        found['action_normalisers'], total, rtol=1e-5, atol=1e-5
      )
  slope = jax.grad(lambda c: read(params, c)['action_values_targets'].sum())
  assert not any(np.asarray(x).any() for x in jax.tree.leaves(slope(copy)))


def tilted(p, q, value, **fields):
  """The distribution of one place; the heads are q and above it."""
  q = np.asarray(q)
  outputs = jnp.asarray([value, *q, *(q + [0.0, 0.5, 0.0])])
  logits = ActionValueTilt(**fields)(
    LogitContext(jnp.log(jnp.asarray(p)), values_RH=outputs)
  )
  return jax.nn.softmax(logits)


def test_the_acting_rule_by_hand():
  """pi (.5, .3, .2), Q (.2, .8, .5), V .5; the smaller Q counts."""
  place = [0.5, 0.3, 0.2], [0.2, 0.8, 0.5], 0.5
  found = tilted(*place, beta=4.0, clip=None)
  np.testing.assert_allclose(found, [0.1118, 0.7397, 0.1485], atol=1e-4)
  found = tilted(*place)  # beta 16, clip 0
  np.testing.assert_allclose(found, [0.0082, 0.5951, 0.3967], atol=1e-4)
  np.testing.assert_allclose(tilted(*place, beta=0.0), place[0], rtol=1e-6)
  # Without a bound a shift of Q and V, or of V only, changes nothing.
  other = tilted(place[0], place[1], -3.0, beta=4.0, clip=None)
  np.testing.assert_allclose(
    other, tilted(*place, beta=4.0, clip=None), rtol=1e-5
  )


def test_the_sampler_tilts_by_the_head_of_the_policy(tiny):
  """E1: its log-probs are those of the score under the same transform; a large
  beta takes the token with the largest Q."""
  cfg, params = made(tiny)
  prompt = np.array([[1, 2, 3]])
  start = start_trajectories(
    prompt,
    np.ones((1, 3)),
    np.zeros(1),
    group_size=4,
    max_response_tokens=5,
  )

  def sampled(**fields):
    tilt = (ActionValueTilt(clip=None, **fields),)
    traj = generate(
      params,
      cfg,
      start,
      jax.random.key(1),
      SamplingConfig(transforms=tilt),
      max_new_tokens=5,
    )
    forward = statistics.Forward(model=cfg)
    needs = (ActionValues(),)
    return traj, statistics.token_statistics(forward, params, traj, needs, tilt)

  traj, stats = sampled(beta=0.3)
  np.testing.assert_allclose(traj.logp_behaviour_BT, stats['logp'], atol=1e-4)
  traj, _ = sampled(beta=1e4)
  hidden = statistics.states_before(statistics.Forward(model=cfg), params, traj)
  _, q = action_values.split(models.all_values(params, hidden))
  np.testing.assert_array_equal(
    traj.response_BT, q.min(axis=-2).argmax(axis=-1)
  )


def test_transforms_of_evaluations_are_checked():
  """No piece of logits; and where no values are computed."""
  for wrong in (3, ilql.get_method().losses[0]):
    config = configuration.build('haggling', 'reinforce', [])
    settings = dataclasses.replace(config.evaluation, transforms=(wrong,))
    with pytest.raises(ValueError, match='evaluation.transforms holds'):
      validate(dataclasses.replace(config, evaluation=settings))
  sampling = SamplingConfig(transforms=(ActionValueTilt(),))
  with pytest.raises(ValueError, match='ActionValueTilt reads the value head'):
    sampling.transform(jnp.zeros((1, 11)))


def test_the_head_must_fit():
  """The message says what to set."""
  cfg = models.ModelConfig(
    vocab_size=11,
    num_layers=1,
    width=16,
    num_heads=2,
    num_kv_heads=1,
    head_size=8,
    mlp_size=24,
  )
  method = ilql.get_method()
  check = model_checks.check_action_values
  with pytest.raises(ValueError, match='value_head = False'):
    check((), method, cfg)
  cfg = dataclasses.replace(cfg, value_head=True)
  with pytest.raises(ValueError, match='num_values = 1: set it to 23'):
    check((), method, cfg)
  whole = dataclasses.replace(cfg, num_values=OUTPUTS)
  check((), method, whole)
  with pytest.raises(ValueError, match="critic = 'own'"):
    check((), method, dataclasses.replace(whole, critic='own'))
  sft = method.replace(losses=method.losses[:1], value_target=None)
  check((), sft, cfg)
  with pytest.raises(ValueError, match='set it to 23'):
    check((ActionValueTilt(),), sft, cfg)
