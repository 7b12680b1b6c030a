"""Behaviour alignment (R9): a reward that is learned for the primary return.

A room with a goal whose primary reward is at the goal only, and an auxiliary
one for every move towards a goal: the right one, or another. Returns are exact
and policies are tabular.
"""

import functools

import jax
import jax.numpy as jnp

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from experiments.papers.control.protected import SIZE, room
from rl_jax.control import alignment
from rl_jax.types import Array

GAMMA, LAMBDA, TASKS = 0.9, 1e-3, 32
HORIZON = 40  # .9^40 is 1.5%
RATE, OUTER, INNER = 10.0, 20.0, 5  # rates of theta and phi; steps of theta
AUXILIARY = 1.0  # reward of a move in the direction of its goal
RETURN, WEIGHT = 'primary return', 'weight of the auxiliary reward'
PRIMARY, SUM, ALIGNED = 'primary only', 'sum', 'aligned'


def towards(cell: Array, kernel_SAS: Array) -> Array:
  """1 where an action brings a state nearer to a cell, [S, A]."""
  row, column = jnp.divmod(jnp.arange(SIZE**2), SIZE)
  far_S = abs(row - cell // SIZE) + abs(column - cell % SIZE)
  return (kernel_SAS @ far_S < far_S[:, None]).astype(jnp.float32)


def learned(
  kernel_SAS: Array, primary_SA: Array, auxiliary_SA: Array, steps: int
) -> dict[str, tuple[Array, Array]]:
  """(primary return, weight of the auxiliary reward) by arm."""
  S, A = primary_SA.shape
  start_S = jax.nn.one_hot(S - 1, S)

  def expected(reward_SA: Array, theta_SA: Array) -> Array:
    policy_SA = jax.nn.softmax(theta_SA)

    def back(value_S: Array, _: None) -> tuple[Array, None]:
      q_SA = reward_SA + GAMMA * kernel_SAS @ value_S
      return (policy_SA * q_SA).sum(axis=1), None

    value_S, _ = jax.lax.scan(back, jnp.zeros(S), length=HORIZON)
    return (1 - GAMMA) * value_S @ start_S

  primary = functools.partial(expected, primary_SA)

  def value(phi: Array, theta_SA: Array) -> Array:
    reward_SA = alignment.blended(phi, primary_SA, auxiliary_SA)
    return expected(reward_SA, theta_SA) - LAMBDA / 2 * (theta_SA**2).sum()

  def trained(phi: Array, outer: float) -> tuple[Array, Array]:
    def one(carry: tuple[Array, Array], _: None):
      phi, theta_SA = carry
      theta_SA = jax.lax.fori_loop(
        0,
        INNER,
        lambda _, x: x + RATE * jax.grad(value, argnums=1)(phi, x),
        theta_SA,
      )
      move = alignment.implicit_gradient(
        primary, value, phi, theta_SA, rate=RATE, terms=INNER
      )
      return (phi + outer * move, theta_SA), None

    start = phi, jnp.zeros((S, A))
    (phi, theta_SA), _ = jax.lax.scan(one, start, length=steps)
    return primary(theta_SA), phi[-1]

  none = jnp.zeros(S + 2).at[-2].set(1.0)
  both = none.at[-1].set(1.0)
  return {
    PRIMARY: trained(none, 0.0),
    SUM: trained(both, 0.0),
    ALIGNED: trained(both, OUTER),
  }


def measure(key_S: Array, scale: float) -> Results:
  """Two auxiliary rewards."""
  steps = max(1, round(20 * scale))
  kernel_SAS, _, _ = room()
  cells = SIZE**2

  def one(key: Array) -> dict[str, dict[str, Array]]:
    goal_T, other_T = jax.random.randint(key, (2, TASKS), 0, cells - 1)
    other_T = jnp.where(other_T == goal_T, (goal_T + 5) % cells, other_T)
    found = {}
    for name, aim_T in (('helps', goal_T), ('misleads', other_T)):

      def task(goal: Array, aim: Array):
        auxiliary_SA = AUXILIARY * towards(aim, kernel_SAS)
        return learned(kernel_SAS, kernel_SAS[..., goal], auxiliary_SA, steps)

      arms = jax.vmap(task)(goal_T, aim_T)
      found |= {
        f'{metric}, the auxiliary reward {name}': {
          arm: pair[place].mean() for arm, pair in arms.items()
        }
        for place, metric in enumerate((RETURN, WEIGHT))
      }
    return found

  return policies.over_seeds(one, key_S)


ROW = Row(
  'Behaviour alignment (R9), a room of 4x4, exact returns (reconstructed)',
  (
    Claim(
      'an auxiliary reward that misleads harms less than in the sum: the '
      'primary return is higher',
      f'{RETURN}, the auxiliary reward misleads',
      SUM,
      ALIGNED,
    ),
    Claim(
      'one that helps is used: the primary return is higher than without it',
      f'{RETURN}, the auxiliary reward helps',
      PRIMARY,
      ALIGNED,
    ),
  ),
  measure,
)
