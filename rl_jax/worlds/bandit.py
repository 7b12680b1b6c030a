"""A contextual bandit as a language task: one context token, one action."""

from collections.abc import Sequence
import dataclasses
import functools
import string
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.tasks.described import NumberedAnswers

_LETTERS = string.ascii_lowercase


@dataclasses.dataclass(frozen=True)
@checked
class Bandit(NumberedAnswers):
  """Prompt 'C' (a context), response 'f' (an action): the smallest RL problem.

  Every context has one best action. Components: `outcome` is 1 for the best
  action, else 0; `value` is 1 for the best action and a fixed number in
  [0, max_other) for each other one. Both depend only on the seed, and both
  have the optimum 1 in every context. Anything but one action letter gets 0.
  All splits have the same contexts.
  """

  num_contexts: int = ranged(8, 1, 26)
  num_actions: int = ranged(8, 2, 26)
  max_other: float = ranged(0.8, 0.0, 1.0)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def alphabet(self) -> str:
    """Contexts in upper case, actions in lower case."""
    contexts = _LETTERS[: self.num_contexts].upper()
    return contexts + _LETTERS[: self.num_actions]

  def table(self) -> tuple[tuple[float, ...], ...]:
    """value[context][action]; the largest of every row is exactly 1."""
    return _table(
      self.num_contexts, self.num_actions, self.max_other, self.seed
    )

  def num_prompts(self, split: str) -> int:
    """One prompt per context."""
    base.check_split(split)
    return self.num_contexts

  def example(self, split: str, index: int) -> Example:
    """The context of that index and its best action."""
    base.check_index(self, split, index)
    row = self.table()[index]
    return Example(
      prompt=_LETTERS[index].upper(),
      answer=_LETTERS[row.index(1.0)],
      id=index,
    )

  def target(self, example: Example) -> str:
    """The best action."""
    return example.answer

  def hinted(self, example: Example) -> Example:
    """Adds the best action after the context: 'Cf'."""
    return dataclasses.replace(example, prompt=example.prompt + example.answer)

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    """Puts solved contexts, each with its action, before the prompt: 'AbC'."""
    shown = ''.join(f'{e.prompt}{text}' for e, text in solved)
    return dataclasses.replace(example, prompt=shown + example.prompt)

  @property
  def num_answers(self) -> int:
    """The answers are the actions (see `Described`)."""
    return self.num_actions

  def describe(self, example: Example) -> tuple[int, int]:
    """(1: all prompts are equally hard, outcome of the first action)."""
    return 1, int(example.answer == _LETTERS[0])

  def answer_number(self, response: str) -> int | None:
    """The number of the action, from 0."""
    if len(response) != 1 or response not in _LETTERS[: self.num_actions]:
      return None
    return _LETTERS.index(response)

  def answer_number_device(self, response_BT, length_B, tokenizer) -> Any:
    """The jittable twin of `answer_number`: (i32[B], bool[B])."""
    from rl_jax.tasks import device_verifiers

    letters = _LETTERS[: self.num_actions]
    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    return device_verifiers.one_of(
      response_BT, kept_BT, [tokenizer.encode(letter)[0] for letter in letters]
    )

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Looks the action up in the row of the context."""
    action = self.answer_number(response)
    if action is None:
      return {base.OUTCOME: 0.0, 'value': 0.0}
    value = self.table()[example.id][action]
    return {base.OUTCOME: float(value == 1.0), 'value': value}

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(context index i32[B, 1], ones i32[B])."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.pad_rows([[example.id] for example in examples])

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    action_B, valid_B = self.answer_number_device(
      response_BT, length_B, tokenizer
    )
    table_CA = jnp.asarray(self.table(), jnp.float32)
    value_B = jnp.where(valid_B, table_CA[answer_BA[:, 0], action_B], 0.0)
    return {base.OUTCOME: (value_B == 1.0).astype('float32'), 'value': value_B}


@functools.lru_cache
def _table(num_contexts, num_actions, max_other, seed):
  rows = []
  for context in range(num_contexts):
    stream = draws.Draws('bandit', seed, context)
    best = stream.below(num_actions)
    # With max_other = 1 there must still be one best action.
    values = [
      min(stream.uniform() * max_other, 0.999) for _ in range(num_actions)
    ]
    rows.append(tuple(1.0 if a == best else v for a, v in enumerate(values)))
  return tuple(rows)
