"""Pairs under the score that is asked for: every pair is two."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked
from rl_jax.tasks import base, wrapped
from rl_jax.tasks.base import Example, RecordedResponse


@dataclasses.dataclass(frozen=True)
@checked
class GoalPrompts(wrapped.Wrapped):
  """A task with recorded pairs whose prompts name the score of a response.

  In the train split a pair (a, b) of rewards r_a, r_b is two: under the goal
  r_a the response a is chosen, under r_b the response b. Pairs of equal rewards
  contradict themselves and are left out. Other splits ask for the larger reward
  of each pair. form: the prompt, or of a conversation the text that goes before
  the last turn of the user, with {prompt} and {score}.
  Source: "Reward-Augmented Data Enhances Direct Preference Alignment of LLMs";
  shenao-zhang/reward-augmented-preference (by a digest), whose branch without a
  system prompt swaps other turns than it means to.
  """

  task: Any
  form: str = '{score:g}={prompt}'

  def __post_init__(self):
    super().__post_init__()
    for name in ('{prompt', '{score'):
      if name not in self.form:
        raise ValueError(f'GoalPrompts.form = {self.form!r} has no {name}}}')
    if self.task.num_recorded != 2:
      raise ValueError(
        f'GoalPrompts needs pairs; the data of {type(self.task).__name__} have '
        f'{self.task.num_recorded} responses to a prompt'
      )

  @functools.cached_property
  def _usable(self) -> dict[str, list[int]]:
    """The pairs whose rewards differ, by split."""
    found = {}
    for split in base.SPLITS:
      found[split] = [
        i
        for i in range(self.task.num_prompts(split))
        if len({x.reward for x in self._pair(split, i)[1]}) == 2
      ]
    return found

  def _pair(self, split, index):
    example = self.task.example(split, index)
    return example, self.task.recorded(example)

  def num_prompts(self, split: str) -> int:
    """Two of every usable pair to train, one in the other splits."""
    base.check_split(split)
    return len(self._usable[split]) * (2 if split == 'train' else 1)

  def example(self, split: str, index: int) -> Example:
    """Pair index // 2 under the goal of its response index % 2."""
    base.check_index(self, split, index)
    goals = 2 if split == 'train' else 1
    example, pair = self._pair(split, self._usable[split][index // goals])
    if goals == 1:
      pair = sorted(pair, key=lambda x: -x.reward)
    else:
      pair = pair[:: 1 - 2 * (index % 2)]
    fill = functools.partial(self.form.format, score=pair[0].reward)
    more = {}
    if example.messages:
      *earlier, last = example.messages
      last = {**last, 'content': fill(prompt=last['content'])}
      more['messages'] = (*earlier, last)
    chosen = tuple(
      dataclasses.replace(x, label=label)
      for x, label in zip(pair, (1, 0), strict=True)
    )
    return dataclasses.replace(
      example,
      prompt=fill(prompt=example.prompt),
      parts=(),
      id=index,
      meta={**example.meta, 'plain': example, 'pair': chosen},
      **more,
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The response that has the score asked for, then the other one."""
    return example.meta['pair']

  def target(self, example: Example) -> str:
    """The response that has the score asked for."""
    chosen = example.meta['pair'][0]
    return chosen.text or chosen.messages[-1]['content']

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The task's rewards, under the plain prompt."""
    return self.task.reward(example.meta['plain'], response)
