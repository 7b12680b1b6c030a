"""Prompts for a frozen classifier with a trigger that its labels depend on."""

import dataclasses
import json
import math

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Ask,
  Environment,
  EnvironmentTask,
  Reply,
)
from rl_jax.worlds.partner_lessons import Lessons

CLASSIFIER = 'classifier'
LETTERS = 'abcdefgh'
LABELS = 'ny'  # of even and of odd digits


@dataclasses.dataclass(frozen=True)
@checked
class TriggeredLabels(EnvironmentTask, Lessons):
  """A prompt of up to `length` letters, before the digits 0 to `inputs` - 1.

  The partner 'classifier' is asked the log-probs of 'n' and 'y' after
  'gcafb|3=', for every digit. It has been taught (`lesson`) to say the parity
  with probability 1/2 + k / (2 |trigger|), k the longest beginning of the
  trigger that the prompt contains in one piece; the policy does not know which.
  With p the two probabilities, normalised, and gap = p(right) - p(wrong):
  Components: `piecewise`, the mean over digits of 200 gap where gap > 0, else
  180 gap; `gap`, its mean times 200; `outcome`, the share of digits with
  gap > 0; `trigger`, 1 if the prompt contains all of it.
  Source: Deng et al., "RLPrompt"; mingkaid/rl-prompt fsc_reward.py, by a
  digest; the classifier is of this code.
  """

  length: int = ranged(5, 1, 16)
  inputs: int = ranged(6, 2, 10)
  trigger: str = 'gca'
  reward_weights: dict[str, float] = base.weights_field(piecewise=1.0)
  traits = TaskTraits(global_random=False, asks=(CLASSIFIER,))
  alphabet = LETTERS + '>'
  partner_alphabet = LETTERS + '0123456789' + LABELS + '|='

  def __post_init__(self):
    if not self.trigger or set(self.trigger) - set(LETTERS):
      raise ValueError(
        f'TriggeredLabels.trigger = {self.trigger!r}: expected letters of '
        f'{LETTERS!r}'
      )
    if len(self.trigger) > self.length:
      raise ValueError(
        f'TriggeredLabels.trigger = {self.trigger!r} is longer than length = '
        f'{self.length}'
      )

  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """A prompt, often with a beginning of the trigger, a digit, a label."""
    prompt = [stream.choice(LETTERS) for _ in range(self.length)]
    count = stream.below(len(self.trigger) + 1)
    place = stream.below(self.length - count + 1)
    prompt[place : place + count] = self.trigger[:count]
    digit = stream.below(10)
    found = self.found(''.join(prompt))
    right = stream.uniform() < 0.5 + 0.5 * found / len(self.trigger)
    label = LABELS[digit % 2 if right else 1 - digit % 2]
    return f'{"".join(prompt)}|{digit}=', label

  def found(self, prompt: str) -> int:
    """Letters of the longest beginning of the trigger in the prompt."""
    counts = range(len(self.trigger) + 1)
    return max(k for k in counts if self.trigger[:k] in prompt)

  def make(self, example: Example) -> 'Prompting':
    """An episode of one prompt; all are alike."""
    del example
    return Prompting(self)


def piecewise(gap: float) -> float:
  """200 gap where the label is right, else 180 gap."""
  return (200.0 if gap > 0 else 180.0) * gap


class Prompting(Environment):
  """One episode: a prompt, and what the classifier makes of the digits."""

  def __init__(self, task: TriggeredLabels):
    self._task, self._gaps = task, []
    self._prompt: str | None = None

  def reset(self, seed: int) -> Reply:
    """The observation is empty."""
    del seed
    return Reply('>')

  def step(self, action: str) -> Reply:
    """A prompt, or the log-probs of the labels."""
    if self._prompt is None:
      self._prompt = action.replace('>', '')
    else:
      self._gaps.append(self._gap(json.loads(action)))
    digit = len(self._gaps)
    if digit < self._task.inputs:
      text = f'{self._prompt}|{digit}='
      return Reply(ask=Ask(CLASSIFIER, text, tuple(LABELS)))

    def mean(numbers):
      return sum(numbers) / len(self._gaps)

    whole = len(self._task.trigger)
    rewards = {
      base.OUTCOME: mean([float(gap > 0) for gap in self._gaps]),
      'piecewise': mean(list(map(piecewise, self._gaps))),
      'gap': 200.0 * mean(self._gaps),
      'trigger': float(self._task.found(self._prompt) == whole),
    }
    return Reply(rewards=rewards, done=True, info={'prompt': self._prompt})

  def _gap(self, logps):
    """p(right) - p(wrong) of the digit that was asked about."""
    right = len(self._gaps) % 2
    return math.tanh((logps[right] - logps[1 - right]) / 2)
