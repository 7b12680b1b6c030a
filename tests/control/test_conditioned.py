"""Cloning for a return by the decoder of the library."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import conditioned, worlds
from rl_jax.control.conditioned import Aiming, Conditioned, Episodes, Texts
from rl_jax.control.unroll import histories
from rl_jax.models import presets

MODEL = presets.small(
  vocab_size=16,
  num_layers=2,
  width=16,
  num_heads=1,
  num_kv_heads=1,
  head_size=16,
  mlp_size=32,
  lora_rank=4,
  lora_alpha=8.0,
  lora_targets=('wq', 'wk', 'wv'),
)
LEARNER = Conditioned(
  model=MODEL,
  observations=2,
  actions=2,
  window=5,
  horizon=12,
  batch=8,
  scale=10.0,
  rate=3e-3,
)


def windows(seed=0, batch=3):
  keys = jax.random.split(jax.random.key(seed), 3)
  return Episodes(
    jax.random.normal(keys[0], (batch, 5, 2)),
    jax.random.uniform(keys[1], (batch, 5, 2), minval=-1.0),
    jax.random.normal(keys[2], (batch, 5)),
  )


TIME = jnp.broadcast_to(jnp.arange(5)[None], (3, 5))


def test_returns_to_go_by_hand():
  """E1: rewards (1, 0, 2, 3), scale 10."""
  found = conditioned.returns_to_go(jnp.array([1.0, 0, 2, 3]), 10.0)
  np.testing.assert_allclose(found, [0.6, 0.5, 0.5, 0.3], rtol=1e-6)


def test_a_residual_block_by_hand():
  """E1: x W1 + GELU(x W1) W2 with x W1 = 2; without W2 it is linear."""
  block = {'first': jnp.array([[2.0]]), 'second': jnp.array([[3.0]])}
  found = conditioned.apply(block, jnp.array([1.0]))
  np.testing.assert_allclose(found, [2 + 3 * 1.954597], rtol=1e-4)
  linear = block | {'second': jnp.zeros((1, 1))}
  assert conditioned.apply(linear, jnp.array([1.0]))[0] == 2


def test_adapters_begin_at_zero_and_are_scaled_by_two():
  """E0 at the start: the frozen body itself; alpha / rank = 2."""
  params = LEARNER.init(jax.random.key(0))
  plain = LEARNER.replace(model=dataclasses.replace(MODEL, lora_rank=0))
  bare = {name: x for name, x in params.items() if name != 'lora'}
  found = LEARNER.predicted(params, windows(), TIME)
  np.testing.assert_array_equal(found, plain.predicted(bare, windows(), TIME))
  assert MODEL.lora_alpha / MODEL.lora_rank == 2


def test_only_the_first_token_of_a_step_knows_the_target():
  """E0: other returns change nothing before their step; nor do actions."""
  params = LEARNER.init(jax.random.key(0))
  base = windows()
  found = LEARNER.predicted(params, base, TIME)
  later = base._replace(returns=base.returns.at[:, 3].add(1.0))
  other = LEARNER.predicted(params, later, TIME)
  np.testing.assert_array_equal(found[:, :3], other[:, :3])
  assert jnp.abs(found[:, 3:] - other[:, 3:]).min() > 0
  # A step's own action comes after its prediction.
  acted = base._replace(action=base.action.at[:, 3].add(1.0))
  other = LEARNER.predicted(params, acted, TIME)
  np.testing.assert_array_equal(found[:, :4], other[:, :4])
  assert jnp.abs(found[:, 4] - other[:, 4]).min() > 0


def trained(learner, texts, steps=40):
  params = learner.init(jax.random.key(0))
  key = jax.random.key(1)
  obs = jax.random.uniform(key, (6, 12, 2), minval=-1.0)
  data = Episodes(obs, obs[..., ::-1] * 0.5, jnp.ones((6, 12)))
  fit = jax.jit(lambda p, k: learner.fit(p, data, texts, k, steps))
  state, metrics = fit(params, key)
  return params, state.params, metrics


def test_the_body_is_frozen_and_adapters_learn():
  """E0: only a learner of the whole moves the body; the loss falls."""
  token_MX = jax.random.randint(jax.random.key(2), (4, 9), 0, 16)
  before, after, metrics = trained(LEARNER, Texts(token_MX, 2))
  jax.tree.map(np.testing.assert_array_equal, before['model'], after['model'])
  assert jnp.abs(after['lora']['layers']['wq']['b']).max() > 0
  assert metrics['cloned'][-5:].mean() < 0.7 * metrics['cloned'][:5].mean()
  assert metrics['text'].shape == (40,)
  before, after, _ = trained(LEARNER.replace(whole=True), None)
  gap = jax.tree.map(
    lambda a, b: float(jnp.abs(a - b).max()), before['model'], after['model']
  )
  assert max(jax.tree.leaves(gap)) > 1e-3


def test_without_texts_the_weight_of_the_text_says_nothing():
  """E0."""
  _, one, _ = trained(LEARNER.replace(text=0.0), None, steps=3)
  _, two, _ = trained(LEARNER.replace(text=5.0), None, steps=3)
  jax.tree.map(np.testing.assert_array_equal, one, two)


def test_text_is_learned_by_the_body():
  """The loss of a body that is trained on one text falls below chance."""
  token = jnp.tile(jnp.arange(8), 3)[None]
  params = LEARNER.init(jax.random.key(0))
  chance = conditioned.text_loss(params, MODEL, token)
  assert abs(float(chance) - np.log(16)) < 0.5
  grad = jax.jit(jax.grad(conditioned.text_loss), static_argnums=1)
  for _ in range(20):
    step = grad(params, MODEL, token)
    params = jax.tree.map(lambda x, g: x - 0.3 * g, params, step)
  assert conditioned.text_loss(params, MODEL, token) < 0.7 * chance


def test_the_actor_reads_what_training_reads():
  """E1: its actions are those of the windows of its history, and G falls."""
  world = worlds.PointMaze(goals=((2, 4),), ends=False)
  actor = Aiming(
    learner=LEARNER,
    params=LEARNER.init(jax.random.key(0)),
    target=jnp.float32(20.0),
  )
  keys = jax.random.split(jax.random.key(3), 2)
  steps = histories(world, actor, keys, 2, 12)
  earned = jnp.cumsum(steps.reward[:, :12], axis=1) - steps.reward[:, :12]
  left = (20 - earned) / 10
  for t in (0, 3, 4, 9):
    first = max(0, t - 4)
    part = slice(first, first + 5)
    window = Episodes(steps.obs[:, part], steps.action[:, part], left[:, part])
    time = jnp.broadcast_to(jnp.arange(first, first + 5)[None], (2, 5))
    made = LEARNER.predicted(actor.params, window, time)[:, t - first]
    np.testing.assert_allclose(steps.action[:, t], made, rtol=1e-4, atol=1e-5)
  # The second episode begins without a past: like the first from its place.
  alone = Episodes(
    steps.obs[:, 12:17], steps.action[:, 12:17], jnp.full((2, 5), 2.0)
  )
  made = LEARNER.predicted(actor.params, alone, TIME[:2])[:, 0]
  np.testing.assert_allclose(steps.action[:, 12], made, rtol=1e-4, atol=1e-5)


def test_sizes_are_checked():
  with pytest.raises(ValueError, match='Conditioned.window = 0'):
    Conditioned(model=MODEL, observations=1, actions=1, window=0)


@pytest.mark.parametrize(
  'sizes, words',
  [
    (
      ((6, 12, 2), (6, 11, 2), (6, 12)),
      r'Episodes.action has shape \(6, 11',
    ),
    (
      ((6, 12, 2), (5, 12, 2), (6, 12)),
      r'Episodes.action has shape \(5, 12',
    ),
    (((6, 12, 3), (6, 12, 2), (6, 12)), r'Episodes.obs has shape \(6, 12, 3'),
    (((6, 12, 2), (6, 12, 2), (72,)), r'Episodes.returns has shape \(72,\)'),
    (((6, 4, 2), (6, 4, 2), (6, 4)), 'episodes of 4 steps.*window = 5'),
    (((6, 13, 2), (6, 13, 2), (6, 13)), 'episodes of 13 .* to horizon = 12'),
  ],
)
def test_unequal_episodes_are_refused_when_they_are_traced(sizes, words):
  """A gather would take other rows of a wrong length without a word."""
  data = Episodes(*(jnp.zeros(size) for size in sizes))
  params = LEARNER.init(jax.random.key(0))
  with pytest.raises(ValueError, match=words):
    jax.jit(lambda key: LEARNER.fit(params, data, None, key, 2))(
      jax.random.key(0)
    )
