"""DR-RPO (L202): robust value iteration on a lake and on a linear world.

Values are learned from episodes at one slip and tested, by exact returns, at
others. On the lake every factor moves in a ball of the same radius; in the
linear world only that of the risky way does.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import robust
from rl_jax.control.robust import RobustIteration
from rl_jax.types import Array

LAKE = ('S___', '_O_O', '___O', 'O__G')
MOVES = (
  (-1, 0),
  (0, 1),
  (1, 0),
  (0, -1),
)  # the sides of a move are its neighbours
HORIZON, SLIP, TESTS = 12, 0.1, (0.0, 0.1, 0.3, 0.5)
RADII = (0.0, 0.1, 0.3)
RISK, LOST = 0.05, (0.0, 0.3, 0.6)


def lake(slip: float) -> tuple[Array, Array]:
  """(transitions [S, A, S], rewards [S, A]); holes and the goal are final."""
  side = len(LAKE)
  S, A = side**2, len(MOVES)
  kernel, goal = np.zeros((S, A, S)), np.zeros(S)
  for s in range(S):
    row, column = divmod(s, side)
    goal[s] = LAKE[row][column] == 'G'
    for a in range(A):
      if LAKE[row][column] in 'OG':
        kernel[s, a, s] = 1.0
        continue
      for turn, share in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
        move = MOVES[(a + turn) % A]
        cell = np.clip((row + move[0], column + move[1]), 0, side - 1)
        kernel[s, a, cell[0] * side + cell[1]] += share
  reward = kernel @ goal * (1 - goal)[:, None]
  return jnp.asarray(kernel, jnp.float32), jnp.asarray(reward, jnp.float32)


def fork(lost: float) -> tuple[Array, Array, Array]:
  """(transitions, rewards, features) of a safe and a risky way.

  States: start, safe, risky, failure. The safe way pays .85 a step, the risky
  one 1, and fails with probability RISK, or `lost` more. Features are mixtures
  of three factors: to safe, to risky or failure, and to failure.
  """
  fails = RISK + lost * (1 - RISK)
  factors = jnp.array(
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1 - fails, fails], [0.0, 0.0, 0.0, 1.0]]
  )
  ways = jnp.array([[0.95, 0.05, 0.0], [0.05, 0.95, 0.0]])
  stay = jnp.broadcast_to(jnp.eye(3)[:, None], (3, 2, 3))
  phi_SAD = jnp.concatenate([ways[None], stay])
  reward_SA = jnp.broadcast_to(
    jnp.array([0.0, 0.85, 1.0, 0.0])[:, None], (4, 2)
  )
  return phi_SAD @ factors, reward_SA, phi_SAD


def learned(
  iteration: RobustIteration, kernel_SAS: Array, key: Array, episodes: int
) -> Array:
  """The policy [H, S, A] after so many episodes, without its bonus."""

  def one(memory: robust.Memory, number: Array):
    now = jax.random.fold_in(key, number)
    return iteration.episode(memory, kernel_SAS, jnp.int32(0), now), None

  memory, _ = jax.lax.scan(one, iteration.start(), jnp.arange(episodes))
  return dataclasses.replace(iteration, bonus=0.0).plan(memory)[0]


def _on_lake(key: Array, episodes: int) -> dict[str, dict[str, Array]]:
  """Shares of episodes that reach the goal, by slip and radius."""
  kernel_SAS, reward_SA = lake(SLIP)
  S, A = reward_SA.shape
  found: dict[str, dict[str, Array]] = {}
  for rho in RADII:
    iteration = RobustIteration(
      phi_SAD=jnp.eye(S * A).reshape(S, A, S * A),
      reward_SA=reward_SA,
      reference_SA=jnp.full((S, A), 1 / A),
      rho_D=jnp.full(S * A, rho),
      horizon=HORIZON,
      eta=0.005,
    )
    policy_HSA = learned(iteration, kernel_SAS, key, episodes)
    for slip in TESTS:
      arms = found.setdefault(f'lake, reaches the goal at slip {slip}', {})
      arms[f'rho {rho}'] = robust.expected_return(policy_HSA, *lake(slip), 0)
  return found


def _on_fork(key: Array, episodes: int) -> dict[str, dict[str, Array]]:
  """Returns of three steps, by the loss of the risky way and radius."""
  kernel_SAS, reward_SA, phi_SAD = fork(0.0)
  found: dict[str, dict[str, Array]] = {}
  for rho in RADII:
    iteration = RobustIteration(
      phi_SAD=phi_SAD,
      reward_SA=reward_SA,
      reference_SA=jnp.full((4, 2), 0.5),
      rho_D=jnp.array([0.0, rho, 0.0]),
      top=2.0,
    )
    policy_HSA = learned(iteration, kernel_SAS, key, episodes)
    for lost in LOST:
      arms = found.setdefault(f'fork, return with {lost} more failures', {})
      arms[f'rho {rho}'] = robust.expected_return(
        policy_HSA, *fork(lost)[:2], 0
      )
  return found


def measure(key_S: Array, scale: float) -> Results:
  """Both worlds."""
  episodes = max(1, round(400 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    return {**_on_lake(key, episodes), **_on_fork(key, episodes)}

  return policies.over_seeds(one, key_S)


ROW = Row(
  'DR-RPO (L202), a lake of 4x4 and a fork (reconstructed)',
  (
    Claim(
      'on the lake at slip .5 the radius .3 reaches the goal more often than 0',
      'lake, reaches the goal at slip 0.5',
      'rho 0.0',
      'rho 0.3',
    ),
    Claim(
      'on the fork as it was trained the radius 0 has the higher return',
      'fork, return with 0.0 more failures',
      'rho 0.3',
      'rho 0.0',
    ),
    Claim(
      'on the fork with 60% more failures the radius .3 has the higher return',
      'fork, return with 0.6 more failures',
      'rho 0.0',
      'rho 0.3',
    ),
  ),
  measure,
)
