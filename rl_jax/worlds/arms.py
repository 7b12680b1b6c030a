"""A bandit that is played again and again in one context."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import math
import string
from typing import Any

import numpy as np

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  DeviceReply,
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

PROMPT, UNKNOWN = '>', '?'
_PARTS = 1000  # of a probability, which is an integer on the device

# Pulls of each arm and wins so far, [K] both -> the arm that is pulled next.
Player = Callable[[np.ndarray, np.ndarray], int]


@dataclasses.dataclass(frozen=True)
@checked
class Arms(EnvironmentTask):
  """Pull an arm a turn, by its letter; a win is observed as '1>', else '0>'.

  The arms win with probabilities that are uniform on [0, 1] and are drawn again
  after every `keep` pulls, so a policy that remembers can find the best one.
  observed: 'wins', or 'nothing', which leaves nothing to remember ('?>'). Any
  other text wins nothing and observes '?>'. All rows of a group have the same
  arms, and win with the same pulls of them.
  Components: `outcome` 1 / pulls for a win, so that an episode has its mean;
  `regret` the probability of the best arm less that of the pulled one, `best` 1
  for the best arm, both divided by the pulls.
  Source: the setting of "Exploitation Is All You Need... for Exploration"
  (abstract only), Bernoulli arms as in "EVOLvE: Evaluating and Optimizing LLMs
  For Exploration".
  """

  arms: int = ranged(4, 2, 10)
  pulls: int = ranged(20, 1, 1000)
  keep: int = ranged(20, 1, 1000)
  observed: str = chosen('wins', ('wins', 'nothing'))
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return self.letters + '01' + UNKNOWN + PROMPT

  @property
  def letters(self) -> str:
    """The letters of the arms."""
    return string.ascii_lowercase[: self.arms]

  @property
  def shares(self) -> tuple[np.float32, np.float32]:
    """The shares of a win and of a thousandth in the mean of an episode.

    Factors, as compilers change divisions by constants into products.
    """
    part = 1.0 / self.pulls
    return np.float32(part), np.float32(part / _PARTS)

  def table(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(thousandths of probabilities, 1 for wins) of a seed, int [pulls, K]."""
    return _table(self.arms, self.pulls, self.keep, seed)

  def actions(self, example: Example) -> list[str]:
    """The letters of the best arms, which nobody can know at first."""
    chance_TK, _ = self.table(seed_of(example))
    return [self.letters[k] for k in chance_TK.argmax(axis=1)]

  def make(self, example: Example) -> 'Pulling':
    """An episode with the arms of the example."""
    return Pulling(self)

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    """Chances and wins of all pulls, i32[N, 2 T K]."""
    from rl_jax.tasks import device_verifiers

    tables = [self.table(seed_of(example)) for example in examples]
    return device_verifiers.pad_rows(
      [np.concatenate(one).ravel().tolist() for one in tables]
    )

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """The state, with the number of pulls so far."""
    import jax.numpy as jnp

    pulled_B = jnp.zeros_like(answer_BA[:, 0])
    return (answer_BA, pulled_B), pulled_B - 1

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `Pulling.step`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers
    from rl_jax.worlds import device_text

    table_SV, texts = device_text.word_table(list(self.letters), tokenizer)
    known = {letter: k for k, letter in enumerate(self.letters)}
    number_S = jnp.asarray([known.get(text, -1) for text in texts], jnp.int32)
    arm_B = number_S[device_text.spelled(table_SV, action_BA, length_B)]
    answer_BA, pulled_B = state
    B, T, K = len(arm_B), self.pulls, self.arms
    chance_BTK, win_BTK = jnp.moveaxis(answer_BA.reshape(B, 2, T, K), 1, 0)
    now_B = jnp.minimum(pulled_B, T - 1), jnp.maximum(arm_B, 0)
    row_B, pulls = jnp.arange(B), arm_B >= 0
    chance_B = jnp.where(pulls, chance_BTK[row_B, *now_B], 0)
    win_B = jnp.where(pulls, win_BTK[row_B, *now_B], 0)
    best_B = chance_BTK[row_B, now_B[0]].max(axis=1)
    says_B = pulls if self.observed == 'wins' else jnp.zeros_like(pulls)
    ids_SO, length_S = device_verifiers.pad_rows(
      [tokenizer.encode(text + PROMPT) for text in UNKNOWN + '01']
    )
    said_B = jnp.where(says_B, 1 + win_B, 0)
    done_B = pulled_B + 1 >= T
    none_B, (part, fine) = jnp.full_like(arm_B, -1), self.shares
    return (answer_BA, pulled_B + 1), DeviceReply(
      ids_BO=jnp.asarray(ids_SO)[said_B],
      length_B=jnp.asarray(length_S)[said_B],
      rewards={
        base.OUTCOME: win_B.astype(jnp.float32) * part,
        'regret': (best_B - chance_B).astype(jnp.float32) * fine,
        'best': (pulls & (chance_B == best_B)).astype(jnp.float32) * part,
      },
      done_B=done_B,
      state_B=none_B,
      action_B=arm_B,
    )


class Pulling(Environment):
  """One episode."""

  def __init__(self, task: Arms):
    self._task = task

  def reset(self, seed: int) -> Reply:
    """Nothing is known."""
    self._chance_TK, self._win_TK = self._task.table(seed)
    self._pulled = 0
    return Reply(PROMPT)

  def step(self, action: str) -> Reply:
    """Anything but a letter of an arm pulls none."""
    task, place = self._task, min(self._pulled, self._task.pulls - 1)
    pulls = len(action) == 1 and action in task.letters
    arm = task.letters.index(action) if pulls else 0
    best = int(self._chance_TK[place].max())
    chance = int(self._chance_TK[place, arm]) if pulls else 0
    win = int(self._win_TK[place, arm]) if pulls else 0
    self._pulled += 1
    says = pulls and task.observed == 'wins'
    # Divided as on the device, in float32.
    part, fine = task.shares
    return Reply(
      (str(win) if says else UNKNOWN) + PROMPT,
      rewards={
        base.OUTCOME: float(np.float32(win) * part),
        'regret': float(np.float32(best - chance) * fine),
        'best': float(np.float32(pulls and chance == best) * part),
      },
      done=self._pulled >= task.pulls,
      action=action if pulls else '',
    )


def ucb(pulled_K: np.ndarray, won_K: np.ndarray, alpha: float = 0.5) -> int:
  """argmax of wins / n + sqrt(alpha ln t / n), each arm once first.

  t: pulls so far. Source: EVOLvE; banditbench/agents/classics.py, by a digest.
  """
  if not pulled_K.all():
    return int(np.argmin(pulled_K))
  bonus_K = np.sqrt(alpha * math.log(pulled_K.sum()) / pulled_K)
  return int(np.argmax(won_K / pulled_K + bonus_K))


def thompson(
  pulled_K: np.ndarray, won_K: np.ndarray, rng: np.random.Generator
) -> int:
  """argmax of draws from Beta(1 + wins, 1 + losses)."""
  return int(np.argmax(rng.beta(1 + won_K, 1 + pulled_K - won_K)))


def played(task: Arms, example: Example, player: Player) -> dict[str, float]:
  """Components of the episode of a player, which knows when arms are new."""
  walk, total = task.make(example), {}
  pulled_K, won_K = np.zeros(task.arms), np.zeros(task.arms)
  walk.reset(seed_of(example))
  for pull in range(task.pulls):
    if pull and pull % task.keep == 0:
      pulled_K, won_K = np.zeros(task.arms), np.zeros(task.arms)
    arm = player(pulled_K, won_K)
    rewards = walk.step(task.letters[arm]).components
    pulled_K[arm] += 1
    won_K[arm] += rewards[base.OUTCOME] > 0
    for name, x in rewards.items():
      total[name] = total.get(name, 0.0) + x
  return total


@functools.lru_cache(maxsize=4096)
def _table(arms, pulls, keep, seed):
  stream = draws.Draws('arms', arms, seed)
  chance_K: list[int] = []
  chances, wins = [], []
  for pull in range(pulls):
    if pull % keep == 0:
      chance_K = [stream.below(_PARTS + 1) for _ in range(arms)]
    chances.append(chance_K)
    wins.append([int(stream.below(_PARTS) < chance) for chance in chance_K])
  return np.array(chances, np.int32), np.array(wins, np.int32)
