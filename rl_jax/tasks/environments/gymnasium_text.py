"""Environments of Gymnasium whose observations and actions are text."""

import collections
from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import functools
import json
import os
import re
import string
from typing import Any

import numpy as np

from rl_jax.checks import checked, chosen
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply

# Where the agent is: in colour.
_MARKED = re.compile(r'\x1b\[[\d;]+m(.*?)\x1b\[0m')
REWARD = 'reward'  # the component that is the environment's own reward
# Of the solution: long enough for the toy grids, and a shorter way is better.
_STEPS, _DISCOUNT = 500, 0.99
# Environments of episodes that have ended, by how they are made: `reset` with a
# seed begins again, and making one may take as long as an episode. One that was
# made before a fork may share its pipes with other processes and is not used.
_IDLE: dict[tuple[Any, ...], list[Any]] = collections.defaultdict(list)
# state -> action -> (probability, next state, reward, whether it ends) each.
Table = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class GymnasiumText(EnvironmentTask):
  """Episodes of `gymnasium.make(name, **options)`.

    GymnasiumText(name='FrozenLake-v1', options={'is_slippery': False},
      words=('left', 'down', 'right', 'up'))

  words: the actions of a Discrete space, in their order; () has the numbers.
    A Text space takes the turn as it is.
  shown: 'value' writes the observation itself, 'ansi' what the environment
    renders as text, coloured parts in brackets.
  solved: `outcome` is 1 if the rewards of an episode that has terminated sum
    up to this at least.
  prompt: text in front of the first observation.
  alphabet: for a character tokenizer, or a tuple of words and other pieces; all
    texts of the episodes are made of it.

  A turn that is not an action changes nothing; it is answered with the actions.
  Components: `reward`, `outcome`, and `invalid`, such turns.

  Raises: ValueError for spaces of other kinds. Needs the extra 'games'.
  """

  name: str = 'FrozenLake-v1'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  words: tuple[str, ...] = ()
  shown: str = chosen('value', ('value', 'ansi'))
  solved: float = 1.0
  prompt: str = ''
  alphabet: str | tuple[str, ...] = string.printable
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  def __post_init__(self):
    if 'render_mode' in self.options:
      raise ValueError('GymnasiumText.options: render_mode follows from shown')

  def prepare(self) -> None:
    """Imports the package once and makes the environment, to check it."""
    self.make(self.example('train', 0)).close()

  def example(self, split: str, index: int) -> Example:
    """An initial state, with the prompt."""
    example = super().example(split, index)
    return dataclasses.replace(example, prompt=self.prompt)

  def make(self, example: Example) -> 'GymnasiumEpisode':
    """An episode that has not started."""
    return GymnasiumEpisode(self)

  def best_return(self, steps: int) -> float:
    """The greatest expected return in so many steps, over initial states.

    Raises: ValueError for an environment without a table of transitions.
    """
    env = self.make(self.example('train', 0)).unwrapped
    value_S, _ = solved_table(_table(env, self.name), steps)
    return float(env.initial_state_distrib @ value_S)


def _made(gymnasium, task, mode):
  """The environment; `render_mode` is given to one that has to render only.

  Many environments of users take no such argument.
  """
  if mode is None:
    return gymnasium.make(task.name, **task.options)
  try:
    return gymnasium.make(task.name, render_mode=mode, **task.options)
  except TypeError as error:
    if 'render_mode' not in str(error):
      raise
    raise ValueError(
      f'GymnasiumText.shown = {task.shown!r}, but {task.name} takes no '
      "render_mode: set shown='value'"
    ) from error


class GymnasiumEpisode(Environment):
  """An episode of the made environment, in text."""

  def __init__(self, task: GymnasiumText):
    gymnasium = _package()
    mode = 'ansi' if task.shown == 'ansi' else None
    self._task = task
    how = gymnasium, task.name, mode, repr(task.options)
    self._idle = _IDLE[*how, os.getpid()]
    self._env = self._idle.pop() if self._idle else _made(gymnasium, task, mode)
    self._fails = True  # as long as a call has not returned
    space, kinds = self._env.action_space, gymnasium.spaces
    self._texts = isinstance(space, kinds.Text)
    if not self._texts and not isinstance(space, kinds.Discrete):
      raise ValueError(
        f'GymnasiumText: {task.name} has actions {space}: expected a Text or a '
        'Discrete space'
      )
    self._actions = {}
    if not self._texts:
      numbers = range(int(space.start), int(space.start + space.n))
      words = task.words or tuple(map(str, numbers))
      if len(words) != len(numbers):
        raise ValueError(
          f'GymnasiumText.words: {task.name} has {len(numbers)} actions, got '
          f'{words}'
        )
      self._actions = dict(zip(words, numbers, strict=True))

  def reset(self, seed: int) -> Reply:
    """The first observation."""
    self._total = 0.0
    found, _ = self._env.reset(seed=seed)
    self._fails = False
    return Reply(self._observed(found), state=self._state(found))

  def step(self, action: str) -> Reply:
    """The next observation, or the actions if this is none."""
    word = action if self._texts else action.strip()
    known = self._texts or word in self._actions
    if known and self._texts:
      known = self._env.action_space.contains(word)
    if not known:
      words = '' if self._texts else f': {", ".join(self._actions)}'
      return Reply(
        f'Not an action{words}\n',
        rewards={base.OUTCOME: 0.0, REWARD: 0.0, 'invalid': 1.0},
        state=self._last,
        action='',
      )
    made = word if self._texts else self._actions[word]
    self._fails = True
    found, reward, terminated, truncated, _ = self._env.step(made)
    self._fails = False
    self._total += float(reward)
    solved = bool(terminated) and self._total >= self._task.solved
    return Reply(
      self._observed(found),
      rewards={
        base.OUTCOME: float(solved),
        REWARD: float(reward),
        'invalid': 0.0,
      },
      done=bool(terminated),
      truncated=bool(truncated) and not terminated,
      state=self._state(found),
      action=word,
    )

  @property
  def unwrapped(self) -> Any:
    """The environment of the package."""
    return self._env.unwrapped

  @property
  def commands(self) -> tuple[str, ...]:
    """The actions of a Discrete space; of a Text space ()."""
    return tuple(self._actions)

  @property
  def solution(self) -> tuple[str, ...]:
    """The best action from here, discounted by 0.99.

    Raises: ValueError for an environment without a table of transitions.
    """
    best = _best_actions(self._task.name, json.dumps(self._task.options))
    return (self.commands[best[int(self._last)]],)

  def close(self) -> None:
    """The environment is left to another episode, unless it has failed."""
    env, self._env = self._env, None
    if env is not None and self._fails:
      env.close()
    elif env is not None:
      self._idle.append(env)

  def _observed(self, found):
    if self._task.shown == 'ansi':
      return _MARKED.sub(r'[\1]', self._env.render())
    return found if isinstance(found, str) else f'{_plain(found)}\n'

  def _state(self, found):
    self._last = repr(_plain(found))
    return self._last


@functools.lru_cache(maxsize=8)
def _best_actions(name: str, options: str) -> Any:
  env = _package().make(name, **json.loads(options)).unwrapped
  table = _table(env, name)
  return solved_table(table, _STEPS, _DISCOUNT)[1]


def _table(env: Any, name: str) -> Table:
  if not hasattr(env, 'P'):
    raise ValueError(
      f'GymnasiumText.name = {name!r} has no table of transitions (P), so its '
      'best actions are not known'
    )
  return env.P


def _plain(value: Any) -> Any:
  """Converts arrays of NumPy, whose text depends on its version."""
  if isinstance(value, dict):
    return {key: _plain(x) for key, x in value.items()}
  if isinstance(value, tuple):
    return tuple(map(_plain, value))
  with contextlib.suppress(AttributeError):
    return value.tolist()
  return value


def _package():
  try:
    import gymnasium
  except ImportError as error:
    raise ImportError(
      "GymnasiumText needs the extra 'games': pip install 'rl_jax[games]'"
    ) from error
  return gymnasium


def solved_table(
  table: Table, steps: int, discount: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
  """(f64[S], int[S]): the best return of each state in so many steps, how.

    V_0 = 0;  Q_k(s, a) = E[r + discount V_k-1(s')],  V_k = max_a Q_k

  V is 0 after the end. The actions are those of the first of the steps, the
  lowest number among equals.
  """
  states, actions = len(table), len(table[0])
  value_S, best_S = np.zeros(states), np.zeros(states, int)
  rows: list[tuple[Any, ...]] = [
    (state, action, *outcome)
    for state in range(states)
    for action in range(actions)
    for outcome in table[state][action]
  ]
  state, action, chance, after, reward, ended = map(
    np.asarray, zip(*rows, strict=True)
  )
  for _ in range(steps):
    q_SA = np.zeros((states, actions))
    found = reward + discount * np.where(ended, 0.0, value_S[after])
    np.add.at(q_SA, (state, action), chance * found)
    value_S, best_S = q_SA.max(axis=1), q_SA.argmax(axis=1)
  return value_S, best_S
