"""PMOE (L144): a point between a near small goal and a far large one."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control.base import Box, Space, World, declared
from rl_jax.control.mixture import Mixture, MixtureActor
from rl_jax.control.unroll import Steps
from rl_jax.types import Array

STEPS, EPISODES, EPOCHS, SPEED = 8, 32, 5, 0.25
GAMMA, LAMBDA, RATE = 0.99, 0.95, 3e-3
RETURN, LARGE = 'return', 'episodes that end at the large goal'
WEIGHT = 'largest weight of an expert at the start'
ONE, FIVE, UNTAUGHT = 'one Gaussian', 'PMOE', 'router not taught'


@declared
class TwoGoals(World):
  """A point that begins at 0 and moves by SPEED times the action.

  A step pays .4 near the goal (-.5, 0) and 1 near (1, 0), with widths of .3.
  """

  observations = Box(2)

  @property
  def actions(self) -> Space:
    """Moves."""
    return Box(2)

  def reset(self, key: Array) -> Array:
    """The start."""
    del key
    return jnp.zeros(2)

  def begin(self, state: Array, key: Array) -> Array:
    """Near 0."""
    del state
    return 0.05 * jax.random.normal(key, (2,))

  def observe(self, state: Array) -> Array:
    """The position."""
    return state

  def step(
    self, state: Array, action: Array, key: Array
  ) -> tuple[Array, Array, Array]:
    """A move; the horizon ends the episode."""
    del key
    state = state + SPEED * jnp.clip(action, -1, 1)

    def near(goal: float) -> Array:
      distance = ((state - jnp.array([goal, 0.0])) ** 2).sum()
      return jnp.exp(-distance / (2 * 0.3**2))

    return state, 0.4 * near(-0.5) + near(1.0), jnp.bool_(False)


def _advantages(steps: Steps, value_BT: Array) -> Array:
  """GAE [B, T]; nothing follows the last step."""
  next_BT = jnp.pad(value_BT[:, 1:], ((0, 0), (0, 1)))
  delta_BT = steps.reward + GAMMA * next_BT - value_BT

  def back(later_B: Array, delta_B: Array) -> tuple[Array, Array]:
    now_B = delta_B + GAMMA * LAMBDA * later_B
    return now_B, now_B

  start_B = jnp.zeros(len(value_BT))
  return jax.lax.scan(back, start_B, delta_BT.T, reverse=True)[1].T


def trained(mixture: Mixture, key: Array, updates: int) -> Any:
  """Parameters after PPO on so many batches of episodes."""
  world, adam = TwoGoals(), optax.adam(RATE)

  def one(carry, number: Array):
    params, state = carry
    now = jax.random.fold_in(key, number)
    actor = MixtureActor(mixture=mixture, params=params)
    steps = policies.play(world, actor, jax.random.split(now, EPISODES), STEPS)
    value_BT = mixture.value(params, steps.obs)
    advantage_BT = _advantages(steps, value_BT)
    scaled_BT = (advantage_BT - advantage_BT.mean()) / (
      advantage_BT.std() + 1e-8
    )
    arrays = {
      'obs': steps.obs,
      'action': steps.action,
      'logp_old': mixture.log_prob(params, steps.obs, steps.action),
      'advantage': scaled_BT,
      'returns': advantage_BT + value_BT,
    }
    rows = {k: x.reshape(-1, *x.shape[2:]) for k, x in arrays.items()}

    def epoch(carry, number: Array):
      params, state = carry
      grads = jax.grad(mixture.loss)(
        params, rows, jax.random.fold_in(now, number)
      )
      moves, state = adam.update(grads, state, params)
      return (optax.apply_updates(params, moves), state), None

    carry, _ = jax.lax.scan(epoch, (params, state), jnp.arange(EPOCHS))
    return carry, None

  first = mixture.init(jax.random.fold_in(key, updates))
  start = first, adam.init(first)
  (params, _), _ = jax.lax.scan(one, start, jnp.arange(updates))
  return params


def measure(key_S: Array, scale: float) -> Results:
  """After PPO with one Gaussian and with five experts."""
  updates = max(1, round(150 * scale))
  arms = {
    ONE: Mixture(experts=1),
    FIVE: Mixture(),
    UNTAUGHT: Mixture(router_coef=0.0),
  }

  def one(key: Array) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {RETURN: {}, LARGE: {}, WEIGHT: {}}
    for name, mixture in arms.items():
      params = trained(mixture, key, updates)
      actor = MixtureActor(mixture=mixture, params=params)
      keys_B = jax.random.split(jax.random.fold_in(key, 1), 256)
      steps = policies.play(TwoGoals(), actor, keys_B, STEPS)
      weight_K = jnp.exp(mixture.weights(params, jnp.zeros(2)))
      right_B = steps.obs[:, -1, 0] > 0.5
      found[RETURN][name] = steps.reward.sum(axis=1).mean()
      found[LARGE][name] = right_B.mean()
      found[WEIGHT][name] = weight_K.max()
    return found

  return policies.over_seeds(one, key_S)


ROW = Row(
  'PMOE (L144), two goals',
  (
    Claim(
      'the return of PMOE is above that of one Gaussian', RETURN, ONE, FIVE
    ),
    Claim(
      'and above that of experts whose router is not taught',
      RETURN,
      UNTAUGHT,
      FIVE,
    ),
  ),
  measure,
)
