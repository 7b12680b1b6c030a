"""LaMo (C156): a decoder that has read text, for cloning with few episodes.

The decoder has two layers and reads characters of English prose, the help texts
that Python brings along.
"""

from collections.abc import Iterable
import dataclasses
from pydoc_data import topics
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.papers.control import maze, policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, conditioned, worlds
from rl_jax.control.base import Actor
from rl_jax.control.conditioned import Aiming, Conditioned, Episodes, Texts
from rl_jax.models import presets, spec, transformer
from rl_jax.models.transformer import ModelConfig
from rl_jax.types import Array

EPISODES = 1000  # of all data
SHARES = (0.01, 0.1)
ALPHABET, CHARACTERS = 128, 96
TARGET = 30.0  # steps at the goal
WINDOW = 8  # steps that are read
# Of attention's inputs only, as published.
ADAPTERS: Any = {
  'lora_rank': 16,
  'lora_alpha': 32.0,
  'lora_targets': ('wq', 'wk', 'wv'),
}
METRIC = 'steps at the goal of 40'
TEXT, RANDOM, WHOLE = 'read text', 'random', 'decision transformer'


def world() -> worlds.PointMaze:
  """The U maze; every step at the goal pays 1, and no episode ends early."""
  return worlds.PointMaze(goals=(maze.GOAL,), start=None, ends=False)


def episodes(key: Array, scale: float) -> Episodes:
  """Half of the controller with noise .5, half of random actions, mixed."""
  found = []
  expert = actors.WayPoints(world=world(), goal=maze.GOAL, noise=0.5)
  players: Iterable[Actor] = (expert, actors.Uniform(space=world().actions))
  for number, player in enumerate(players):
    keys = jax.random.split(jax.random.fold_in(key, number), EPISODES // 2)
    found.append(policies.play(world(), player, keys, maze.HORIZON))
  obs, action, reward = (
    jnp.concatenate([getattr(x, name) for x in found])
    for name in ('obs', 'action', 'reward')
  )
  order = jax.random.permutation(jax.random.fold_in(key, 2), EPISODES)
  returns = conditioned.returns_to_go(reward, scale)
  return jax.tree.map(lambda x: x[order], Episodes(obs, action, returns))


def texts() -> Array:
  """Pieces of the help texts, int32[M, CHARACTERS]; others than ASCII are 0."""
  text = '\n'.join(topics.topics[name] for name in sorted(topics.topics))
  code = np.frombuffer(text.encode('ascii', 'replace'), np.uint8)
  count = len(code) // CHARACTERS
  return jnp.asarray(
    code[: count * CHARACTERS].reshape(count, CHARACTERS), jnp.int32
  )


def body() -> ModelConfig:
  """Two layers of width 64 for characters."""
  return presets.small(
    vocab_size=ALPHABET,
    num_heads=4,
    num_kv_heads=4,
    head_size=16,
    mlp_size=128,
    **ADAPTERS,
  )


def learner_of(model: ModelConfig, whole: bool) -> Conditioned:
  """The settings of all arms."""
  if whole:
    model = dataclasses.replace(model, lora_rank=0)
  return Conditioned(
    model=model,
    observations=2,
    actions=2,
    window=WINDOW,
    horizon=maze.HORIZON,
    batch=16,
    scale=float(maze.HORIZON),
    rate=1e-3,
    whole=whole,
  )


def with_text(params: Any, token_MX: Array, key: Array, steps: int) -> Any:
  """params['model'] after steps of Adam (3e-3) on 16 texts each, and losses."""
  model = dataclasses.replace(body(), lora_rank=0)
  optimizer = optax.adam(3e-3)

  def one(state: Any, number: Array) -> tuple[Any, Array]:
    params, opt = state
    draw = jax.random.fold_in(key, number)
    row_B = jax.random.randint(draw, (16,), 0, token_MX.shape[0])

    def loss(params: Any) -> Array:
      return conditioned.text_loss({'model': params}, model, token_MX[row_B])

    value, grads = jax.value_and_grad(loss)(params)
    moves, opt = optimizer.update(grads, opt)
    return (optax.apply_updates(params, moves), opt), value

  start = params, optimizer.init(params)
  (params, _), loss_S = jax.lax.scan(one, start, jnp.arange(steps))
  return params, loss_S


def measure(key_S: Array, scale: float) -> Results:
  """Three beginnings, two shares of the data; the same updates and texts."""
  updates, read = max(1, round(250 * scale)), max(1, round(300 * scale))
  token_MX = texts()

  def one(key: Array) -> dict[str, dict[str, Array]]:
    data = episodes(jax.random.fold_in(key, 1), float(maze.HORIZON))
    model = dataclasses.replace(body(), lora_rank=0)
    fresh = spec.init(transformer.specs(model), key)['model']
    taught, loss_S = with_text(
      fresh, token_MX, jax.random.fold_in(key, 2), read
    )
    tenth = max(1, read // 10)
    found: dict[str, dict[str, Array]] = {
      'cross-entropy of text, nats a character': {
        'first tenth': loss_S[:tenth].mean(),
        'last tenth': loss_S[-tenth:].mean(),
      }
    }
    test = jax.random.split(jax.random.fold_in(key, 4), maze.TEST)
    for share in SHARES:
      part = jax.tree.map(lambda x, s=share: x[: round(s * EPISODES)], data)
      arms = {TEXT: taught, RANDOM: fresh, WHOLE: fresh}
      name = f'{METRIC}, {share:.0%} of the data'
      found[name] = {'data': part.returns[:, 0].mean() * maze.HORIZON}
      for arm, start in arms.items():
        learner = learner_of(body(), arm == WHOLE)
        params = learner.init(jax.random.fold_in(key, 3), start)
        other = None if arm == WHOLE else Texts(token_MX, 2)
        state, _ = learner.fit(
          params, part, other, jax.random.fold_in(key, 5), updates
        )
        actor = Aiming(
          learner=learner, params=state.params, target=jnp.float32(TARGET)
        )
        steps = policies.play(world(), actor, test, maze.HORIZON)
        found[name][arm] = steps.reward.sum(axis=1).mean()
    return found

  return policies.over_seeds(one, key_S)


def _claim(share: float, low: str, text: str) -> Claim:
  """The decoder that has read text earns more than another."""
  return Claim(text, f'{METRIC}, {share:.0%} of the data', low, TEXT)


ROW = Row(
  'LaMo (C156), U maze, a decoder of two layers that has read text',
  (
    _claim(
      0.01, RANDOM, '1% of the data: having read text is better than random'
    ),
    _claim(
      0.1, RANDOM, '10% of the data: having read text is better than random'
    ),
    _claim(
      0.01, WHOLE, '1% of the data: it is better than a decision transformer'
    ),
  ),
  measure,
)
