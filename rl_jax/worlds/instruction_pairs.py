"""Texts under several instructions, compared by responses or by prompts."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse, Task

LETTERS, LENGTH = 'abcd', 6
RULES = 'BCDEN'


def follows(instruction: str, text: str) -> bool:
  """Returns whether a text follows an instruction."""
  neighbours = zip(text, text[1:], strict=False)
  return {
    'B': text.startswith('a'),
    'C': text.count('c') >= 2,
    'D': any(x == y for x, y in neighbours),
    'E': text.endswith('d'),
    'N': 'b' not in text,
  }[instruction]


def followed(instructions: str, text: str) -> float:
  """The share of the instructions that the text follows."""
  return sum(follows(one, text) for one in instructions) / len(instructions)


def drawn_instructions(stream: draws.Draws, count: int) -> str:
  """So many different instructions, in the order of their letters."""
  key = {one: stream.uniform() for one in RULES}
  return ''.join(sorted(sorted(RULES, key=key.__getitem__)[:count]))


@dataclasses.dataclass(frozen=True)
@checked
class InstructionPairs(Task):
  """Pairs such as 'BE=abcadd' against 'BE=bbacda', after the prompt '?'.

  The text before = are instructions, each a letter with a rule: B begins with
  a, C has two c, D has two equal letters in a row, E ends with d, N has no b.
  Instructions are part of what is compared, so that a pair may differ in the
  response, or in the instructions with one response (a prompt pair, of which
  the first is followed more). intra: the share of prompt pairs in the train
  split; the others have responses only, 'validation', or prompts only, 'test'.
  The reward of a text is the share of its instructions that it follows.
  Component: `outcome`, that share of a response.
  """

  intra: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(400, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = LETTERS + '?=' + RULES
  num_recorded = 2

  def num_prompts(self, split: str) -> int:
    """num_train, and 500 in the other splits."""
    base.check_split(split)
    return self.num_train if split == 'train' else 500

  def example(self, split: str, index: int) -> Example:
    """The number of a pair."""
    base.check_index(self, split, index)
    return Example(prompt='?', answer='', id=index, meta={'split': split})

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """Both texts, the one that follows more first."""
    split = example.meta['split']
    stream = draws.Draws('instructions', self.seed, split, example.id)
    share = {'train': self.intra, 'validation': 0.0, 'test': 1.0}[split]
    by_prompt = stream.uniform() < share
    while True:
      first, second = self._drawn(stream, by_prompt)
      if followed(*first) != followed(*second):
        break
    best = sorted((first, second), key=lambda pair: -followed(*pair))
    return tuple(
      RecordedResponse(text='='.join(pair), reward=followed(*pair), label=label)
      for pair, label in zip(best, (1, 0), strict=True)
    )

  def _drawn(
    self, stream: draws.Draws, by_prompt: bool
  ) -> tuple[tuple[str, str], tuple[str, str]]:
    """Two (instructions, text) that share one of both."""
    count = 2 + stream.below(2)

    def instructions() -> str:
      return drawn_instructions(stream, count)

    def text() -> str:
      return ''.join(stream.choice(LETTERS) for _ in range(LENGTH))

    asked, written = instructions(), text()
    if by_prompt:
      return (asked, written), (instructions(), written)
    return (asked, written), (asked, text())

  def target(self, example: Example) -> str:
    """The text that follows more."""
    return self.recorded(example)[0].text

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The share of the instructions that a response names and follows."""
    del example
    asked, mark, text = response.partition('=')
    known = bool(mark) and bool(asked) and set(asked) <= set(RULES)
    return {base.OUTCOME: followed(asked, text) if known else 0.0}
