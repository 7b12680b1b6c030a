"""A hidden digit, and two tools that tell it: a fast one and a slow one."""

from collections.abc import Sequence
import dataclasses
import string
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  DeviceReply,
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

FAST, SLOW, HIDDEN, PROMPT = 'fs?>'


@dataclasses.dataclass(frozen=True)
@checked
class PricedTools(EnvironmentTask):
  """Name the digit; an action of one letter a turn.

  First observation '?>', or '2>' where the question tells its digit. 'f' asks
  the fast tool, whose digit is right in a share of the questions, 's' the slow
  one, which is always right; both reply as '2>'. A digit is the answer and ends
  the episode; any other text observes '?>'.
  Components: `outcome` 1 for the right answer, `calls`, `slow` (calls of the
  slow tool), `called` 1 and `before_call` the turns so far at the first call,
  `cost` and durations 1 of the fast and slow_cost of the slow tool; other
  actions cost nothing and take 1; `malformed` counts those.
  """

  values: int = ranged(4, 2, 10)
  known: float = ranged(0.3, 0.0, 1.0)  # share of questions that tell it
  fast_right: float = ranged(0.5, 0.0, 1.0)
  slow_cost: float = ranged(5.0, 1.0)
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return string.digits[: self.values] + FAST + SLOW + HIDDEN + PROMPT

  def facts(self, example: Example) -> tuple[int, int, int]:
    """(the digit, what the fast tool says, the first observation or -1)."""
    stream = draws.Draws('priced tools', seed_of(example))
    digit = stream.below(self.values)
    other = (digit + 1 + stream.below(self.values - 1)) % self.values
    fast = digit if stream.uniform() < self.fast_right else other
    return digit, fast, digit if stream.uniform() < self.known else -1

  def actions(self, example: Example) -> list[str]:
    """The letters of a shortest solution that is always right."""
    digit, _, observed = self.facts(example)
    return [str(digit)] if observed >= 0 else [SLOW, str(digit)]

  def make(self, example: Example) -> 'Asking':
    """An episode about the example's digit."""
    return Asking(self, example)

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    """The facts, i32[N, 3], and 3 i32[N]."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.pad_rows([self.facts(one) for one in examples])

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """(the facts and the turns without a call so far, -1 after one; states)."""
    import jax.numpy as jnp

    waited_B1 = jnp.zeros_like(answer_BA[:, :1])
    state = jnp.concatenate([answer_BA, waited_B1], axis=1)
    return state, answer_BA[:, 2] + 1

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `Asking.step`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers
    from rl_jax.worlds import device_text

    words = [FAST, SLOW, *string.digits[: self.values]]
    table_SV, texts = device_text.word_table(words, tokenizer)
    known = {word: number for number, word in enumerate(words)}
    number_S = jnp.asarray([known.get(text, -1) for text in texts], jnp.int32)
    number_B = number_S[device_text.spelled(table_SV, action_BA, length_B)]
    fast_B, slow_B, done_B = number_B == 0, number_B == 1, number_B > 1
    observed_B = jnp.where(slow_B, state[:, 0], -1)
    observed_B = jnp.where(fast_B, state[:, 1], observed_B)
    said = [HIDDEN, *string.digits[: self.values]]
    ids_SO, length_S = device_verifiers.pad_rows(
      [tokenizer.encode(one + PROMPT) for one in said]
    )
    calls_B = (fast_B | slow_B).astype(jnp.int32)
    cost_B = fast_B + self.slow_cost * slow_B
    right_B = done_B & (number_B - 2 == state[:, 0])
    waited_B = state[:, 3]
    first_B = (calls_B > 0) & (waited_B >= 0)
    waited_now_B = jnp.where(waited_B < 0, -1, waited_B + 1)
    waited_now_B = jnp.where(first_B, -1, waited_now_B)
    return state.at[:, 3].set(waited_now_B), DeviceReply(
      ids_BO=jnp.asarray(ids_SO)[observed_B + 1],
      length_B=jnp.where(done_B, 0, jnp.asarray(length_S)[observed_B + 1]),
      rewards={
        base.OUTCOME: right_B.astype(jnp.float32),
        'calls': calls_B.astype(jnp.float32),
        'slow': slow_B.astype(jnp.float32),
        'called': first_B.astype(jnp.float32),
        'before_call': jnp.where(first_B, waited_B, 0).astype(jnp.float32),
        'cost': cost_B.astype(jnp.float32),
        'malformed': (number_B < 0).astype(jnp.float32),
      },
      done_B=done_B,
      state_B=observed_B + 1,
      action_B=number_B,
      calls_B=calls_B,
      duration_B=jnp.maximum(cost_B, 1.0),
    )


class Asking(Environment):
  """One episode."""

  def __init__(self, task: PricedTools, example: Example):
    self._task = task
    self._digit, self._fast, self._observed = task.facts(example)

  def reset(self, seed: int) -> Reply:
    """The digit, if the question tells it."""
    del seed  # that of the example
    self._waited, self._called = 0, False
    return Reply(_said(self._observed), state=self._observed)

  def step(self, action: str) -> Reply:
    """Returns what a tool says, or the judgement of an answer."""
    digits = string.digits[: self._task.values]
    answers = len(action) == 1 and action in digits
    observed = {FAST: self._fast, SLOW: self._digit}.get(action, -1)
    cost = {FAST: 1.0, SLOW: self._task.slow_cost}.get(action, 0.0)
    calls = int(action in (FAST, SLOW))
    first, before = calls and not self._called, self._waited
    self._waited, self._called = before + 1, self._called or bool(calls)
    return Reply(
      '' if answers else _said(observed),
      rewards={
        base.OUTCOME: float(answers and int(action) == self._digit),
        'calls': float(calls),
        'slow': float(action == SLOW),
        'called': float(first),
        'before_call': float(before if first else 0),
        'cost': cost,
        'malformed': float(not calls and not answers),
      },
      done=answers,
      state=observed,
      action=action if calls or answers else '',
      calls=calls,
      duration=max(cost, 1.0),
    )


def _said(observed: int) -> str:
  return (HIDDEN if observed < 0 else str(observed)) + PROMPT
