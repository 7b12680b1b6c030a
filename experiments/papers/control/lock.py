"""HNPG (L155): natural steps on a combination lock, with recorded episodes.

Two good states and a dead one: in each good state of each step one action
leads on to either good state, every other one to the dead state, for a small
reward. The end in a good state pays 1. Data come from the right actions with a
share 1 / H of uniform ones.
"""

import functools

import jax
import jax.numpy as jnp

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import natural
from rl_jax.control.natural import Transitions
from rl_jax.types import Array

ACTIONS, HORIZONS = 5, (5, 10, 20)
EPISODES, RECORDED = 50, 2500  # of an iteration, and of the data
SMALL = 0.1  # for the way into the dead state
HYBRID, CRITIC, OWN, CLONE = (
  'HNPG',
  'data in the critic only',
  'own episodes only',
  'cloning',
)


def lock(key: Array, horizon: int, actions: int) -> tuple[Array, Array, Array]:
  """(transitions [H, S, A, S], rewards [H, S, A], right actions [H, 2])."""
  right_H2 = jax.random.randint(key, (horizon, 2), 0, actions)
  right_H2A = jax.nn.one_hot(right_H2, actions)
  on_4, dead_4 = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.0, 0.0, 1.0])
  good_H2AS = jnp.where(
    right_H2A[..., None] > 0, on_4[None, None, None], dead_4[None, None, None]
  )
  lost_H1AS = jnp.broadcast_to(dead_4, (horizon, 1, actions, 3))
  last_H = jnp.zeros(horizon).at[-1].set(1.0)[:, None, None]
  reward_H2A = right_H2A * last_H + (1 - right_H2A) * SMALL
  reward_HSA = jnp.pad(reward_H2A, ((0, 0), (0, 1), (0, 0)))
  return jnp.concatenate([good_H2AS, lost_H1AS], axis=1), reward_HSA, right_H2


def recorded_policy(right_H2: Array, actions: int) -> Array:
  """The right actions, with a share 1 / H of uniform ones, [H, S, A]."""
  noise = 1 / right_H2.shape[0]
  good_H2A = (1 - noise) * jax.nn.one_hot(right_H2, actions) + noise / actions
  return jnp.pad(
    good_H2A, ((0, 0), (0, 1), (0, 0)), constant_values=1 / actions
  )


def objective(
  own: Transitions,
  advantage_HB: Array,
  data: Transitions | None,
  advantage_HSA: Array,
  fixed_HSA: Array,
) -> tuple[natural.Function, natural.Function]:
  """(surrogate, mean KL divergence) of logits [H, S, A].

  Of recorded states it is the expectation over the actions of the policy.
  """
  H = fixed_HSA.shape[0]
  step_H1 = jnp.arange(H)[:, None]

  def surrogate(theta_HSA: Array) -> Array:
    policy_HSA = jax.nn.softmax(theta_HSA)
    place = step_H1, own.state, own.action
    gain = (advantage_HB * policy_HSA[place] / fixed_HSA[place]).mean()
    if data is None:
      return gain
    gain_HS = (policy_HSA * advantage_HSA).sum(axis=2)
    return (gain + gain_HS[step_H1, data.state].mean()) / 2

  def divergence(theta_HSA: Array) -> Array:
    logp_HSA = jax.nn.log_softmax(theta_HSA)
    kl_HS = (fixed_HSA * (jnp.log(fixed_HSA) - logp_HSA)).sum(axis=2)
    own_kl = kl_HS[step_H1, own.state].mean()
    if data is None:
      return own_kl
    return (own_kl + kl_HS[step_H1, data.state].mean()) / 2

  return surrogate, divergence


def trained(
  world: tuple[Array, Array],
  data: Transitions,
  key: Array,
  iterations: int,
  arm: str,
) -> Array:
  """Logits [H, S, A] after so many natural steps."""
  H, S, A = world[1].shape

  def one(theta_HSA: Array, number: Array) -> tuple[Array, None]:
    play_key, take_key = jax.random.split(jax.random.fold_in(key, number))
    policy_HSA = jax.nn.softmax(theta_HSA)
    own = natural.play(*world, policy_HSA, play_key, EPISODES)
    q_HSA = natural.fitted_values(own, None if arm == OWN else data, policy_HSA)
    value_HS = (policy_HSA * q_HSA).sum(axis=2)
    taken_B = jax.random.randint(take_key, (EPISODES,), 0, RECORDED)
    functions = objective(
      own,
      natural.advantages(own, value_HS),
      jax.tree.map(lambda x: x[:, taken_B], data) if arm == HYBRID else None,
      q_HSA - value_HS[..., None],
      policy_HSA,
    )
    return natural.natural_step(*functions, theta_HSA), None

  start_HSA = jnp.zeros((H, S, A))
  return jax.lax.scan(one, start_HSA, jnp.arange(iterations))[0]


def solved(world: tuple[Array, Array], policy_HSA: Array) -> Array:
  """The probability of an end in a good state."""
  kernel_HSAS, _ = world

  def on(state_S: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
    kernel_SAS, policy_SA = now
    return jnp.einsum('s,sa,sat->t', state_S, policy_SA, kernel_SAS), None

  start_S = jnp.array([1.0, 0.0, 0.0])
  return jax.lax.scan(on, start_S, (kernel_HSAS, policy_HSA))[0][:2].sum()


def _cloned(data: Transitions, shape: tuple[int, ...]) -> Array:
  """The shares of the actions in the data, [H, S, A]."""
  count = jnp.full(shape, 1e-3)
  place = jnp.arange(shape[0])[:, None], data.state, data.action
  count = count.at[place].add(1.0)
  return count / count.sum(axis=2, keepdims=True)


def measure(key_S: Array, scale: float) -> Results:
  """Locks of three lengths, after as many episodes."""
  iterations = max(1, round(200 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    lock_key, data_key, train_key = jax.random.split(key, 3)
    found = {}
    for horizon in HORIZONS:
      kernel_HSAS, reward_HSA, right_H2 = lock(lock_key, horizon, ACTIONS)
      world = kernel_HSAS, reward_HSA
      teacher_HSA = recorded_policy(right_H2, ACTIONS)
      data = natural.play(*world, teacher_HSA, data_key, RECORDED)
      run = functools.partial(trained, world, data, train_key, iterations)
      policy = {arm: jax.nn.softmax(run(arm)) for arm in (HYBRID, CRITIC, OWN)}
      policy[CLONE] = _cloned(data, reward_HSA.shape)
      found[f'solved, {horizon} steps'] = {
        arm: solved(world, x) for arm, x in policy.items()
      }
    return found

  return policies.over_seeds(one, key_S)


ROW = Row(
  'HNPG (L155), combination locks',
  (
    Claim(
      'in 10 steps it opens the lock more often than with own episodes only',
      'solved, 10 steps',
      OWN,
      HYBRID,
    ),
    Claim(
      'in 20 steps it does so more often than a copy of the data',
      'solved, 20 steps',
      CLONE,
      HYBRID,
    ),
    Claim(
      'recorded states in the policy step help in 20 steps',
      'solved, 20 steps',
      CRITIC,
      HYBRID,
    ),
  ),
  measure,
)
