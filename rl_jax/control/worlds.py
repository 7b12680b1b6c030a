"""Bandits, sequences of losses, dark rooms and mazes, as pure functions."""

from collections import deque
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import chosen, ranged
from rl_jax.control.base import Box, Discrete, Space, World, declared
from rl_jax.types import Array, static

# Moves of grids: stay, up, down, left, right, as (row, column).
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])


@declared
class Bandit(World):
  """Arms with hidden means, uniform on [0, 1]; there is nothing to observe.

  rewards: 'gaussian' are means with normal noise of deviation sigma,
  'bernoulli' are 1 with the probability of the mean.
  """

  arms: int = ranged(5, 2, static=True)
  rewards: str = chosen('gaussian', ('gaussian', 'bernoulli'))
  sigma: float = ranged(0.3, 0.0)
  observations = Discrete(1)

  @property
  def actions(self) -> Space:
    """The arms."""
    return Discrete(self.arms)

  def reset(self, key: Array) -> Array:
    """Means [K]."""
    return jax.random.uniform(key, (self.arms,))

  def observe(self, state: Array) -> Array:
    """Nothing."""
    del state
    return jnp.int32(0)

  def step(
    self, state: Array, action: Array, key: Array
  ) -> tuple[Array, Array, Array]:
    """The reward of a pull; episodes end at the horizon."""
    mean = state[action]
    if self.rewards == 'gaussian':
      reward = mean + self.sigma * jax.random.normal(key)
    else:
      reward = (jax.random.uniform(key) < mean).astype(jnp.float32)
    return state, reward, jnp.bool_(False)

  def optimal(self, state: Array) -> Array:
    """The arm of the largest mean."""
    return jnp.argmax(state).astype(jnp.int32)

  def regret(self, state: Array, action: Array) -> Array:
    """The difference of means, in units of the reward."""
    return state.max() - state[action]


@declared
class LinearBandit(World):
  """Arms with known features, whose means <theta, x_a> share a hidden theta.

  The features are drawn once, from a seed, as N(0, 1 / dim) per number; theta
  is N(0, 1) per number for every task. Source: the linear bandit of DPT.
  """

  arms: int = ranged(10, 2, static=True)
  dim: int = ranged(2, 1, static=True)
  sigma: float = ranged(0.3, 0.0)
  seed: int = static(default=0)
  observations = Discrete(1)

  @property
  def actions(self) -> Space:
    """The arms."""
    return Discrete(self.arms)

  @property
  def features_KE(self) -> Array:
    """The known features of the arms, [K, dim]."""
    rng = np.random.default_rng(self.seed)
    shape = (self.arms, self.dim)
    return jnp.asarray(rng.normal(size=shape) * self.dim**-0.5, jnp.float32)

  def reset(self, key: Array) -> Array:
    """Means [K]."""
    return self.features_KE @ jax.random.normal(key, (self.dim,))

  def observe(self, state: Array) -> Array:
    """Nothing."""
    del state
    return jnp.int32(0)

  def step(
    self, state: Array, action: Array, key: Array
  ) -> tuple[Array, Array, Array]:
    """The reward of a pull; episodes end at the horizon."""
    noise = self.sigma * jax.random.normal(key)
    return state, state[action] + noise, jnp.bool_(False)

  def optimal(self, state: Array) -> Array:
    """The arm of the largest mean."""
    return jnp.argmax(state).astype(jnp.int32)

  def regret(self, state: Array, action: Array) -> Array:
    """The difference of means, in units of the reward."""
    return state.max() - state[action]


class RoomState(NamedTuple):
  """A cell and the hidden parts of a DarkRoom."""

  cell_2: Array
  goal_2: Array
  key_2: Array  # the cell of the key
  held: Array  # bool, whether the key was found
  order_A: Array  # the move of every action


@declared
class DarkRoom(World):
  """A grid whose goal is not seen: reward 1 for each step that ends on it.

  The agent begins in the middle, observes its cell, and stays or moves by one;
  walls stop it. permuted: the meaning of the actions is hidden, too.
  key_door: the goal counts once the hidden key was visited, which pays 1 once;
  the episode then ends at the goal. goals: cells that may be goals, as
  row * size + column; None are all cells.
  Source: Dark Room and Key-to-Door of "Filtering Learning Histories Enhances
  In-Context Reinforcement Learning", appendix A.
  """

  size: int = ranged(9, 2, static=True)
  permuted: bool = static(default=False)
  key_door: bool = static(default=False)
  goals: tuple[int, ...] | None = static(default=None)
  actions = Discrete(len(MOVES))

  @property
  def observations(self) -> Space:
    """The cells; with a key, the cells without and with it."""
    return Discrete(self.size**2 * (2 if self.key_door else 1))

  def reset(self, key: Array) -> RoomState:
    """A goal, a key and an order of actions."""
    goal_key, key_key, order_key = jax.random.split(key, 3)
    allowed = range(self.size**2) if self.goals is None else self.goals
    goal = jax.random.choice(goal_key, jnp.asarray(allowed, jnp.int32))
    order_A = jnp.arange(len(MOVES))
    if self.permuted:
      order_A = jax.random.permutation(order_key, order_A)
    place = jax.random.randint(key_key, (), 0, self.size**2)
    return RoomState(
      cell_2=jnp.full(2, self.size // 2, jnp.int32),
      goal_2=jnp.stack(jnp.divmod(goal, self.size)),
      key_2=jnp.stack(jnp.divmod(place, self.size)),
      held=jnp.bool_(False),
      order_A=order_A,
    )

  def begin(self, state: RoomState, key: Array) -> RoomState:
    """In the middle, without the key."""
    del key
    return state._replace(
      cell_2=jnp.full(2, self.size // 2, jnp.int32), held=jnp.bool_(False)
    )

  def observe(self, state: RoomState) -> Array:
    """The number of the cell, and whether the key is held."""
    cell = state.cell_2[0] * self.size + state.cell_2[1]
    return cell + self.size**2 * state.held if self.key_door else cell

  def step(
    self, state: RoomState, action: Array, key: Array
  ) -> tuple[RoomState, Array, Array]:
    """A move."""
    del key
    move_2 = jnp.asarray(MOVES, jnp.int32)[state.order_A[action]]
    cell_2 = jnp.clip(state.cell_2 + move_2, 0, self.size - 1)
    at_goal = (cell_2 == state.goal_2).all()
    if not self.key_door:
      after = state._replace(cell_2=cell_2)
      return after, at_goal.astype(jnp.float32), jnp.bool_(False)
    found = (cell_2 == state.key_2).all() & ~state.held
    opened = at_goal & state.held
    after = state._replace(cell_2=cell_2, held=state.held | found)
    reward = found.astype(jnp.float32) + opened.astype(jnp.float32)
    return after, reward, opened

  def optimal(self, state: RoomState) -> Array:
    """A move towards the goal, or first to the key; rows before columns."""
    aim_2 = state.goal_2
    if self.key_door:
      aim_2 = jnp.where(state.held, aim_2, state.key_2)
    row, column = jnp.sign(aim_2 - state.cell_2)
    by_row = jnp.where(row < 0, 1, 2)
    by_column = jnp.where(column < 0, 3, 4)
    move = jnp.where(row != 0, by_row, jnp.where(column != 0, by_column, 0))
    return jnp.argmax(state.order_A == move).astype(jnp.int32)


class Loss(NamedTuple):
  """A sequence of losses, and the place in it."""

  loss_TK: Array
  time: Array


@declared
class Experts(World):
  """Sequences of losses in [0, 1] that do not depend on what is played.

  The last losses of all K actions are observed, 0 at first, and the reward is
  minus the loss. sequences: 'random' are means of U[0, 1] and of a hidden mean
  of every action; 'switching' have a best action that changes after every
  `period` steps; 'alternating' have losses 1 and 0 in turn, each with a hidden
  offset; 'mixed' is one of the three.
  """

  arms: int = ranged(2, 2, static=True)
  steps: int = ranged(25, 1, static=True)
  period: int = ranged(5, 1, static=True)
  noise: float = ranged(0.1, 0.0, 1.0)
  sequences: str = chosen(
    'random', ('random', 'switching', 'alternating', 'mixed')
  )

  @property
  def observations(self) -> Space:
    """The last losses."""
    return Box(self.arms)

  @property
  def actions(self) -> Space:
    """The experts."""
    return Discrete(self.arms)

  def losses(self, key: Array) -> Array:
    """A sequence [T, K]."""
    kind_key, first, second, third = jax.random.split(key, 4)
    shape = self.steps, self.arms
    uniform_TK = jax.random.uniform(first, shape)
    time_T = jnp.arange(self.steps)
    spans = -(-self.steps // self.period)
    best_S = jax.random.randint(second, (spans,), 0, self.arms)
    best_T = best_S[time_T // self.period]
    turn_T = (time_T + best_S[0]) % self.arms
    mean_1K = jax.random.uniform(third, (1, self.arms))
    arm_1K = jnp.arange(self.arms)[None]

    def noisy(loss_TK):
      return (1 - self.noise) * loss_TK + self.noise * uniform_TK

    every = {
      'random': (uniform_TK + mean_1K) / 2,
      'switching': noisy(1.0 * (arm_1K != best_T[:, None])),
      'alternating': noisy(1.0 * (arm_1K == turn_T[:, None])),
    }
    if self.sequences == 'mixed':
      kind = jax.random.randint(kind_key, (), 0, len(every))
      return jnp.stack([*every.values()])[kind]
    return every[self.sequences]

  def reset(self, key: Array) -> Loss:
    """A new sequence."""
    return Loss(self.losses(key), jnp.int32(0))

  def observe(self, state: Loss) -> Array:
    """The losses of the step before."""
    last_K = state.loss_TK[jnp.maximum(state.time - 1, 0)]
    return jnp.where(state.time > 0, last_K, 0.0)

  def step(
    self, state: Loss, action: Array, key: Array
  ) -> tuple[Loss, Array, Array]:
    """Ends with the sequence."""
    del key
    place = jnp.minimum(state.time, self.steps - 1)
    after = state._replace(time=state.time + 1)
    return after, -state.loss_TK[place, action], after.time >= self.steps


class Point(NamedTuple):
  """Position and goal in a PointMaze, in cells: the middle of a cell is .5."""

  place_2: Array
  goal_2: Array


OPEN = ('.....', '.....', '.....', '.....', '.....')
U_SHAPED = ('.....', '.###.', '...#.', '.###.', '.....')
ROOMS = ('...#...', '...#...', '.......', '##.#.##', '...#...', '.......')


@declared
class PointMaze(World):
  """A point that moves by at most `speed` cells per axis among walls.

  maze: rows of '.' and '#'. It begins near the cell `start`, and reaches its
  goal within `radius`, which pays 1. The episode then ends if `ends`. Of a move
  into a wall only the axis that stays free is made. goals: cells (row, column)
  of which a task has one; None are all free cells. The observation is the
  position, and with `sees_goal` the goal, scaled to [-1, 1].
  """

  maze: tuple[str, ...] = static(default=U_SHAPED)
  start: tuple[int, int] | None = static(default=(2, 2))  # None: any free cell
  goals: tuple[tuple[int, int], ...] | None = static(default=None)
  ends: bool = static(default=True)
  sees_goal: bool = static(default=False)
  speed: float = ranged(0.5, 0.0, 1.0, open_low=True)
  radius: float = ranged(0.5, 0.0, open_low=True)
  actions = Box(2)

  def __post_init__(self):
    widths = {len(row) for row in self.maze}
    if len(widths) != 1 or set(''.join(self.maze)) - set('.#'):
      raise ValueError(
        f"PointMaze.maze = {self.maze!r:.80}: expected rows of '.' and '#' of "
        'one length'
      )
    named = [('start', self.start)] if self.start is not None else []
    named += [('goals', goal) for goal in self.goals or ()]
    for name, cell in named:
      if cell not in self.free:
        raise ValueError(f'PointMaze.{name}: {cell} is not a free cell')

  @property
  def free(self) -> list[tuple[int, int]]:
    """Cells without a wall."""
    return [
      (r, c)
      for r, row in enumerate(self.maze)
      for c, mark in enumerate(row)
      if mark == '.'
    ]

  @property
  def observations(self) -> Space:
    """The position, and perhaps the goal."""
    return Box(4 if self.sees_goal else 2)

  @property
  def size_2(self) -> Array:
    """Rows and columns."""
    return jnp.asarray([len(self.maze), len(self.maze[0])], jnp.float32)

  @property
  def wall_HW(self) -> Array:
    """True where a cell is a wall."""
    return jnp.asarray([[mark == '#' for mark in row] for row in self.maze])

  def reset(self, key: Array) -> Point:
    """A goal, and a start."""
    goal_key, start_key = jax.random.split(key)
    cells = jnp.asarray(self.goals or self.free, jnp.float32)
    goal_2 = jax.random.choice(goal_key, cells) + 0.5
    return self.begin(Point(goal_2, goal_2), start_key)

  def begin(self, state: Point, key: Array) -> Point:
    """Within .3 cells of the middle of the start."""
    cell_key, place_key = jax.random.split(key)
    cells = self.free if self.start is None else [self.start]
    cell_2 = jax.random.choice(cell_key, jnp.asarray(cells, jnp.float32))
    shift_2 = jax.random.uniform(place_key, (2,), minval=-0.3, maxval=0.3)
    return state._replace(place_2=cell_2 + 0.5 + shift_2)

  def scaled(self, place_2: Array) -> Array:
    """A position within [-1, 1]."""
    return 2 * place_2 / self.size_2 - 1

  def observe(self, state: Point) -> Array:
    """Scaled to [-1, 1]."""
    seen = [self.scaled(state.place_2)]
    seen += [self.scaled(state.goal_2)] if self.sees_goal else []
    return jnp.concatenate(seen)

  def blocked(self, place_2: Array) -> Array:
    """True for a position in a wall or outside."""
    cell_2 = jnp.floor(place_2).astype(jnp.int32)
    size_2 = self.size_2.astype(jnp.int32)
    outside = (cell_2 < 0).any() | (cell_2 >= size_2).any()
    row, column = jnp.clip(cell_2, 0, size_2 - 1)
    return outside | self.wall_HW[row, column]

  def step(
    self, state: Point, action: Array, key: Array
  ) -> tuple[Point, Array, Array]:
    """Moves along rows, then along columns."""
    del key
    place_2 = state.place_2
    for axis in (0, 1):
      move = self.speed * jnp.clip(action[axis], -1, 1)
      tried_2 = place_2.at[axis].add(move)
      place_2 = jnp.where(self.blocked(tried_2), place_2, tried_2)
    near = jnp.sum((place_2 - state.goal_2) ** 2) <= self.radius**2
    done = near if self.ends else jnp.bool_(False)
    return state._replace(place_2=place_2), near.astype(jnp.float32), done

  def render(self, state: Point, pixels: int = 16) -> Array:
    """Walls .5, the point a blob of height 1; [pixels, pixels]."""
    size_112 = self.size_2[None, None]
    middle_P = (jnp.arange(pixels) + 0.5) / pixels
    place_PP2 = jnp.stack(jnp.meshgrid(middle_P, middle_P, indexing='ij'), -1)
    row_PP, column_PP = jnp.moveaxis(
      (place_PP2 * size_112).astype(jnp.int32), -1, 0
    )
    wall_PP = 0.5 * self.wall_HW[row_PP, column_PP]
    at_112 = state.place_2[None, None] / size_112
    distance_PP = ((place_PP2 - at_112) ** 2).sum(-1)
    return jnp.maximum(wall_PP, jnp.exp(-distance_PP * pixels**2 / 2))


@functools.cache
def next_cells(maze: tuple[str, ...]) -> np.ndarray:
  """The first cell of a shortest path, int[cells, goals, 2], by row * W + c.

  Cells without a path have themselves.
  """
  height, width = len(maze), len(maze[0])
  cells = [(r, c) for r in range(height) for c in range(width)]
  found = np.array(cells)[:, None].repeat(len(cells), axis=1)
  for number, goal in enumerate(cells):
    queue, seen = deque([goal]), {goal}
    while queue:
      row, column = queue.popleft()
      for step in MOVES[1:].tolist():
        other = row + step[0], column + step[1]
        if (
          other in seen or other not in cells or maze[other[0]][other[1]] == '#'
        ):
          continue
        seen.add(other)
        queue.append(other)
        found[other[0] * width + other[1], number] = row, column
  return found
