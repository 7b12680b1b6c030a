"""Actors whose rule is known: bandit algorithms, Q-learning, way-points."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.control.base import Actor, Discrete, Space, Step, declared
from rl_jax.control.worlds import PointMaze, next_cells
from rl_jax.types import Array, static


def pull(score_K: Array) -> Array:
  """The action of the largest score, the first of equal ones."""
  return jnp.argmax(score_K).astype(jnp.int32)


@declared
class Uniform(Actor):
  """Draws every action uniformly, from [-1, 1] in a Box."""

  space: Space = static(default=Discrete(2))

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """A draw."""
    del obs
    if isinstance(self.space, Discrete):
      return jax.random.randint(key, (), 0, self.space.n), memory
    return jax.random.uniform(key, (self.space.size,), minval=-1.0), memory


@declared
class RollIn(Actor):
  """Draws from arm probabilities that are drawn once for every task.

  (1 - c) Dirichlet(1) + c onehot(uniform arm), c uniform in {0, .1, ..., 1}.
  Source: DPT, collect_data.py, where the option --cov is overwritten by c.
  """

  arms: int = ranged(5, 2, static=True)

  def init(self, key: Array) -> Array:
    """Logarithms of the probabilities."""
    mix_key, arm_key, spread_key = jax.random.split(key, 3)
    c = jax.random.randint(mix_key, (), 0, 11) / 10
    spread_K = jax.random.dirichlet(spread_key, jnp.ones(self.arms))
    arm_K = jax.nn.one_hot(
      jax.random.randint(arm_key, (), 0, self.arms), self.arms
    )
    return jnp.log((1 - c) * spread_K + c * arm_K)

  def act(self, memory: Array, obs: Array, key: Array) -> tuple[Array, Array]:
    """A draw."""
    del obs
    return jax.random.categorical(key, memory).astype(jnp.int32), memory


class Pulls(NamedTuple):
  """Pulls of every arm, and the sum of their rewards."""

  count_K: Array
  sum_K: Array

  @classmethod
  def none(cls, arms: int) -> 'Pulls':
    """Before the first pull."""
    return cls(jnp.zeros(arms), jnp.zeros(arms))

  @property
  def mean_K(self) -> Array:
    """The mean reward of every arm, 0 without a pull."""
    return self.sum_K / jnp.maximum(self.count_K, 1)

  def add(self, step: Step) -> 'Pulls':
    """With the pull of a step."""
    return Pulls(
      self.count_K.at[step.action].add(1.0),
      self.sum_K.at[step.action].add(step.reward),
    )


@declared
class UCB(Actor):
  """argmax_a mean_a + sqrt(alpha ln(t) / n_a), each arm once first.

  t is the number of pulls so far. alpha = 0 is the greedy player that pulls
  each arm once. Source: EVOLvE, banditbench/agents/classics.py.
  """

  arms: int = ranged(5, 2, static=True)
  alpha: float = ranged(0.5, 0.0)

  def init(self, key: Array) -> Pulls:
    """No pulls."""
    del key
    return Pulls.none(self.arms)

  def bonus(self, memory: Pulls) -> Array:
    """sqrt(alpha ln(t) / n_a), [K]; infinite for an arm without a pull."""
    total = jnp.maximum(memory.count_K.sum(), 1.0)
    some_K = jnp.maximum(memory.count_K, 1.0)
    bonus_K = jnp.sqrt(self.alpha * jnp.log(total) / some_K)
    return jnp.where(memory.count_K > 0, bonus_K, jnp.inf)

  def act(self, memory: Pulls, obs: Array, key: Array) -> tuple[Array, Pulls]:
    """The arm with the highest bound."""
    del obs, key
    return pull(memory.mean_K + self.bonus(memory)), memory

  def learn(self, memory: Pulls, step: Step) -> Pulls:
    """Counts the pull."""
    return memory.add(step)


@declared
class Thompson(Actor):
  """The best arm of a draw from the posterior of the means.

  rewards 'bernoulli': Beta(1 + wins, 1 + losses). 'gaussian': normal means with
  prior N(1/2, 1/12), the moments of U[0, 1], and noise of deviation sigma.
  The prior knows nothing of a structure that arms share.
  """

  arms: int = ranged(5, 2, static=True)
  rewards: str = chosen('gaussian', ('gaussian', 'bernoulli'))
  sigma: float = ranged(0.3, 0.0, open_low=True)
  prior_mean: float = 0.5
  prior_variance: float = ranged(1 / 12, 0.0, open_low=True)

  def init(self, key: Array) -> Pulls:
    """No pulls."""
    del key
    return Pulls.none(self.arms)

  def posterior(self, memory: Pulls) -> tuple[Array, Array]:
    """Means and variances [K] of the means of normal rewards."""
    precision, prior = self.sigma**-2, 1 / self.prior_variance
    variance_K = 1 / (prior + memory.count_K * precision)
    sum_K = self.prior_mean * prior + memory.sum_K * precision
    return variance_K * sum_K, variance_K

  def act(self, memory: Pulls, obs: Array, key: Array) -> tuple[Array, Pulls]:
    """A draw, and its best arm."""
    del obs
    if self.rewards == 'bernoulli':
      lost_K = memory.count_K - memory.sum_K
      drawn_K = jax.random.beta(key, 1 + memory.sum_K, 1 + lost_K)
    else:
      mean_K, variance_K = self.posterior(memory)
      noise_K = jax.random.normal(key, (self.arms,))
      drawn_K = mean_K + jnp.sqrt(variance_K) * noise_K
    return pull(drawn_K), memory

  def learn(self, memory: Pulls, step: Step) -> Pulls:
    """Counts the pull."""
    return memory.add(step)


@declared
class LinUCB(Actor):
  """argmax_a theta^T x_a + alpha sqrt(x_a^T A^-1 x_a), A = I + sum x x^T.

  theta = A^-1 sum r x. Source: EVOLvE, banditbench/agents/classics.py.
  """

  features_KE: Array
  alpha: float = ranged(1.0, 0.0)

  def init(self, key: Array) -> tuple[Array, Array]:
    """A = I, and a sum of 0."""
    del key
    dim = self.features_KE.shape[1]
    return jnp.eye(dim), jnp.zeros(dim)

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """The arm with the highest bound."""
    del obs, key
    gram_EE, sum_E = memory
    inverse_EE = jnp.linalg.inv(gram_EE)
    x_KE = self.features_KE
    spread_K = jnp.einsum('ke,ef,kf->k', x_KE, inverse_EE, x_KE)
    bound_K = x_KE @ (inverse_EE @ sum_E) + self.alpha * jnp.sqrt(spread_K)
    return pull(bound_K), memory

  def learn(self, memory: Any, step: Step) -> Any:
    """Adds the arm's features."""
    gram_EE, sum_E = memory
    x_E = self.features_KE[step.action]
    return gram_EE + jnp.outer(x_E, x_E), sum_E + step.reward * x_E


@declared
class Hedge(Actor):
  """p_a proportional to exp(-eta sum of observed losses of a).

  For `Experts`, whose observation is the last losses. Reads all losses, unlike
  EXP3.
  """

  arms: int = ranged(2, 2, static=True)
  eta: float = ranged(0.5, 0.0)

  def init(self, key: Array) -> Array:
    """Sums of losses, [K]."""
    del key
    return jnp.zeros(self.arms)

  def act(self, memory: Array, obs: Array, key: Array) -> tuple[Array, Array]:
    """A draw."""
    memory = memory + obs
    drawn = jax.random.categorical(key, -self.eta * memory)
    return drawn.astype(jnp.int32), memory


@declared
class EXP3(Actor):
  """p = w / sum w; w_i *= exp(eta (R / norm) / (p_i + eta / 2)).

  Only the weight of the played i changes; eta = rate sqrt(ln K / (K rounds)).
  Source: PROTECTED, policy_gradients/exp3.py, which adds exploration to the
  weights of rewards: estimates are too low, most for rare arms.
  """

  arms: int = ranged(5, 1, static=True)
  rate: float = ranged(2.0, 0.0)
  rounds: float = ranged(100.0, 1.0)
  norm: float = ranged(1.0, 0.0, open_low=True)

  @property
  def eta(self) -> Array:
    """The step of the logarithms of the weights."""
    return self.rate * jnp.sqrt(
      jnp.log(jnp.float32(self.arms)) / (self.arms * self.rounds)
    )

  def init(self, key: Array) -> Array:
    """Logarithms of the weights, [K]."""
    del key
    return jnp.zeros(self.arms)

  def act(self, memory: Array, obs: Array, key: Array) -> tuple[Array, Array]:
    """A draw."""
    del obs
    return jax.random.categorical(key, memory).astype(jnp.int32), memory

  def learn(self, memory: Array, step: Step) -> Array:
    """The weight of the arm that was played."""
    p = jax.nn.softmax(memory)[step.action]
    gain = self.eta * (step.reward / self.norm) / (p + self.eta / 2)
    return memory.at[step.action].add(gain)


@declared
class QLearner(Actor):
  """Tabular Q-learning with an epsilon-greedy policy; ties are drawn.

  Q(s, a) += rate (r + gamma (1 - done) max Q(s', .) - Q(s, a)). random: the
  probability that a run never learns and draws all its actions, as the noisy
  sources of AD + LHF. The exploration falls by `decay` with every step.
  """

  observations: int = ranged(2, 1, static=True)
  actions: int = ranged(2, 2, static=True)
  rate: float = ranged(0.5, 0.0, 1.0)
  gamma: float = ranged(0.9, 0.0, 1.0)
  epsilon: float = ranged(1.0, 0.0, 1.0)
  decay: float = ranged(0.99, 0.0, 1.0)
  random: float = ranged(0.0, 0.0, 1.0)

  def init(self, key: Array) -> tuple[Array, Array, Array]:
    """(table [S, A], exploration, whether it never learns)."""
    table_SA = jnp.zeros((self.observations, self.actions))
    never = jax.random.uniform(key) < self.random
    return table_SA, jnp.float32(self.epsilon), never

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """Explores, or takes the largest entry."""
    table_SA, epsilon, never = memory
    which, tie, draw = jax.random.split(key, 3)
    noise_A = 1e-6 * jax.random.uniform(tie, (self.actions,))
    explores = never | (jax.random.uniform(which) < epsilon)
    drawn = jax.random.randint(draw, (), 0, self.actions)
    return jnp.where(explores, drawn, pull(table_SA[obs] + noise_A)), memory

  def learn(self, memory: Any, step: Step) -> Any:
    """One step of the table and of the exploration."""
    table_SA, epsilon, never = memory
    after = jnp.where(step.done, 0.0, table_SA[step.next_obs].max())
    error = step.reward + self.gamma * after - table_SA[step.obs, step.action]
    change = self.rate * error
    table_SA = table_SA.at[step.obs, step.action].add(change)
    return table_SA, epsilon * self.decay, never


@declared
class WayPoints(Actor):
  """Goes to a goal of a PointMaze through the middles of free cells.

  goal: a cell; with None that of the observation, which then has to show it.
  noise: deviation of normal noise on the actions, as in the maze data of D4RL,
  .5 there.
  """

  world: PointMaze
  goal: tuple[int, int] | None = static(default=None)
  noise: float = ranged(0.0, 0.0)

  def __post_init__(self):
    world = self.world
    if self.goal is None and not world.sees_goal:
      raise ValueError('WayPoints.goal = None needs PointMaze.sees_goal = True')
    if self.goal is not None and self.goal not in world.free:
      raise ValueError(f'WayPoints.goal: {self.goal} is not a free cell')

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """Towards the middle of the next cell of a shortest path."""
    world = self.world
    place_2 = (obs[:2] + 1) / 2 * world.size_2
    if self.goal is None:
      goal_2 = (obs[2:] + 1) / 2 * world.size_2
    else:
      goal_2 = jnp.asarray(self.goal, jnp.float32) + 0.5

    def number(place_2):
      # A position in a cell, whatever the rounding of the scale has made of it.
      row, column = jnp.floor(place_2 + 1e-4).astype(jnp.int32)
      height, width = len(world.maze), len(world.maze[0])
      row, column = jnp.clip(row, 0, height - 1), jnp.clip(column, 0, width - 1)
      return row * width + column

    table = jnp.asarray(next_cells(world.maze), jnp.float32)
    next_2 = table[number(place_2), number(goal_2)] + 0.5
    noise_2 = self.noise * jax.random.normal(key, (2,))
    action_2 = (next_2 - place_2) / world.speed
    return jnp.clip(action_2 + noise_2, -1, 1), memory
