"""PROTECTED (C153): a list of policies, and EXP3 that chooses among them.

Policies are tabular and ascend their exact returns against all attackers of one
shift, where the published ones are trained by PPO against a learned attacker.
"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, discovery, worlds
from rl_jax.control.base import Step
from rl_jax.types import Array

SIZE, GAMMA = 4, 0.9
EPISODES, PERIOD = 2000, 500  # attacks change after every PERIOD episodes
METRIC = 'return an episode while attacks change'


def room() -> tuple[Array, Array, Array]:
  """Transitions [S, A, S], rewards [S, A] and starts of a room with a goal."""
  S, A = SIZE**2, len(worlds.MOVES)
  kernel, reward = np.zeros((S, A, S)), np.zeros((S, A))
  for s in range(S):
    for a, move in enumerate(worlds.MOVES):
      cell = np.clip(np.array(divmod(s, SIZE)) + move, 0, SIZE - 1)
      after = cell[0] * SIZE + cell[1]
      kernel[s, a, after] = 1
      reward[s, a] = after == SIZE + 1  # the cell (1, 1)
  return jnp.asarray(kernel), jnp.asarray(reward), jnp.full(S, 1 / S)


def attacks() -> Array:
  """[V, S, O]: nothing, and the observed cell shifted by one each way."""
  S = SIZE**2
  found = np.zeros((len(worlds.MOVES), S, S))
  for v, move in enumerate(worlds.MOVES):
    for s in range(S):
      cell = np.clip(np.array(divmod(s, SIZE)) + move, 0, SIZE - 1)
      found[v, s, cell[0] * SIZE + cell[1]] = 1
  return jnp.asarray(found)


def chosen(return_KV: Array, key: Array) -> Array:
  """The mean return of EXP3 over the K policies of a list."""
  K, V = return_KV.shape
  actor = actors.EXP3(
    arms=K, rate=5.0, rounds=float(EPISODES), norm=float(return_KV.max())
  )
  order_key, key = jax.random.split(key)
  phases = EPISODES // PERIOD
  attack_P = jax.random.randint(order_key, (phases,), 0, V)

  def episode(memory: Array, number: Array) -> tuple[Array, Array]:
    arm, memory = actor.act(
      memory, jnp.int32(0), jax.random.fold_in(key, number)
    )
    reward = return_KV[arm, attack_P[number // PERIOD]]
    none, off = jnp.int32(0), jnp.bool_(False)
    step = Step(none, arm, reward, none, off, off)
    return actor.learn(memory, step), reward

  start = actor.init(key)
  return jax.lax.scan(episode, start, jnp.arange(EPISODES))[1].mean()


def measure(key_S: Array, scale: float) -> Results:
  """Lists of 1, 2, 4 and 6 policies of every seed."""
  kernel, reward, start = room()
  exact = discovery.exact_return(kernel, reward, start, GAMMA)

  def evaluate(prob_SA: Array, seen_SO: Array) -> Array:
    return exact(discovery.attacked(prob_SA, seen_SO))

  sizes = (1, 2, 4, 6)
  found: dict[str, list[float]] = {f'list of {size}': [] for size in sizes}
  worst: dict[str, list[float]] = {'first of the list': [], 'any other': []}
  for key in key_S:
    shape = SIZE**2, len(worlds.MOVES)
    logits = discovery.discover(
      evaluate,
      attacks(),
      0.1 * jax.random.normal(key, shape),
      most=max(sizes),
      steps=max(1, round(400 * scale)),
      rate=1.0,
    )
    return_KV = jnp.stack(
      [
        jax.vmap(lambda v, x=x: evaluate(jax.nn.softmax(x), v))(attacks())
        for x in logits
      ]
    )
    for size in sizes:
      keys = jax.random.split(jax.random.fold_in(key, 1), 20)
      part_KV = return_KV[:size]
      mean = jax.vmap(lambda k, part=part_KV: chosen(part, k))(keys).mean()
      found[f'list of {size}'].append(float(mean))
    worst['first of the list'].append(float(return_KV[0].min()))
    others = return_KV[1:] if len(logits) > 1 else return_KV
    worst['any other'].append(float(others.min(axis=1).max()))
  return {METRIC: found, 'worst return over attacks': worst}


ROW = Row(
  'PROTECTED (C153), room 4x4 with shifted observations',
  (
    Claim(
      'EXP3 over four policies is above the max-min policy only',
      METRIC,
      'list of 1',
      'list of 4',
    ),
    Claim(
      'the max-min policy has the best worst case of the list',
      'worst return over attacks',
      'any other',
      'first of the list',
    ),
  ),
  measure,
)
