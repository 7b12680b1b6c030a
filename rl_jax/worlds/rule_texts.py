"""Queries that a text of rules answers, with the text or without it."""

import dataclasses

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

KEYS, LETTERS = '01234567', 'abcd'


@dataclasses.dataclass(frozen=True)
@checked
class RuleTexts(DrawnTask):
  """Prompt '35=', answer 'cb', by rules such as '3c5b0a1d...|' before it.

  A text has one letter for each of the first `keys` digits, in any order. One
  text holds for all prompts of the task, drawn from the seed: `hinted` puts it
  before a prompt. shown: the share of the prompts of the train split that have
  a text, and `others`: whether every prompt then has rules that are only its
  own, to learn how texts are read; a prompt without text has rules, too.
  form: 'text' has the prompt '>' and as its response the text, the query and
  the answer, for a likelihood of all of these. Component: `outcome`.
  Source: the stages of "Multimodal Policy Internalization for Conversational
  Agents"; rules and queries are ours.
  """

  keys: int = ranged(8, 1, 8)
  shown: float = ranged(0.0, 0.0, 1.0)
  others: bool = False
  form: str = chosen('answer', ('answer', 'text'))
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(200, 1)
  num_test: int = ranged(200, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = KEYS + LETTERS + '|=>'

  def rules(self, *parts: object) -> dict[str, str]:
    """A letter for each digit, in the order of the text."""
    stream = draws.Draws('rule text', self.seed, *parts)
    place = {key: stream.uniform() for key in KEYS[: self.keys]}
    order = sorted(place, key=place.__getitem__)
    return {key: stream.choice(LETTERS) for key in order}

  def example(self, split: str, index: int) -> Example:
    """The query of that index."""
    base.check_index(self, split, index)
    stream = draws.Draws('rule query', self.seed, split, index)
    keys = KEYS[: self.keys]
    query = stream.choice(keys) + stream.choice(keys)
    train = split == 'train'
    shown = train and stream.uniform() < self.shown
    rules = self.rules(index) if train and self.others else self.rules()
    answer = ''.join(rules[key] for key in query)
    plain = Example(
      prompt=f'{query}=', answer=answer, id=index, meta={'rules': rules}
    )
    if train and self.form == 'text':
      text = self.hinted(plain).prompt + answer
      return dataclasses.replace(plain, prompt='>', answer=text)
    return self.hinted(plain) if shown else plain

  def hinted(self, example: Example) -> Example:
    """The query after the text of its rules."""
    rules = example.meta['rules']
    text = ''.join(key + letter for key, letter in rules.items())
    return dataclasses.replace(example, prompt=f'{text}|{example.prompt}')

  def target(self, example: Example) -> str:
    """The answer."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Equality."""
    return {base.OUTCOME: float(response == example.answer)}
