"""Lists of responses to be scored by a principle, and texts written by one."""

import dataclasses
import json

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws, score_lists
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.worlds import principle_pairs
from rl_jax.worlds.principle_pairs import RUBRICS, met

# How a judge of groups is asked what PrincipleLists teaches.
QUESTION = '{rubric}\n{responses}:'
DIGITS = 2  # of a response
MOST = 2 * DIGITS  # of `met`
SCORES = (0.0, float(MOST))


@dataclasses.dataclass(frozen=True)
@checked
class PrincipleLists(DrawnTask):
  """Prompt 'eu', then '[1]' and '40' in lines and so on, response the object
  '{"1":2,"2":0,"3":3}' with the score of each.

  The first line is one of worlds.principle_pairs.RUBRICS, and a score is how
  often digits meet it (`met`). Prompts are QUESTION as `Judge` fills it for a
  group of as many responses, whose scores are not all equal. The test split has
  the last `unseen` rubrics, the other splits the others. Components:
  `agreement`, the reward of RewardAnything, which counts, and `outcome`, 1 if
  no pair is in another order. `target` errs: each score is drawn, with chance
  `errors`, and the same for the same prompt.
  Source: "RewardAnything: Generalizable Principle-Following Reward Models",
  whose principles and responses are texts; scores there are from 1 to 5.
  """

  candidates: int = ranged(4, 2, 9)
  unseen: int = ranged(3, 1, len(RUBRICS) - 1)
  errors: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(4000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(
    agreement=1.0, outcome=0.0
  )

  alphabet = ''.join(principle_pairs.PRINCIPLES) + '0123456789[]{}",:\n'

  def example(self, split: str, index: int) -> Example:
    """A drawn rubric and drawn digits."""
    base.check_index(self, split, index)
    stream = draws.Draws('principle lists', self.seed, split, index)
    seen = len(RUBRICS) - self.unseen
    rubric = stream.choice(
      RUBRICS[seen:] if split == 'test' else RUBRICS[:seen]
    )
    texts, scores = [''], [0]
    while len(set(scores)) == 1:
      texts = [drawn(stream) for _ in range(self.candidates)]
      scores = [met(rubric, text) for text in texts]
    shown = (f'[{i}]\n{text}' for i, text in enumerate(texts, 1))
    return Example(
      prompt=f'{rubric}\n' + '\n\n'.join(shown) + ':',
      answer=json.dumps(scores),
      id=index,
    )

  def target(self, example: Example) -> str:
    """The object of the scores, some of which are drawn."""
    stream = draws.Draws('principle lists teacher', self.seed, example.prompt)
    scores = [
      stream.below(MOST + 1) if stream.uniform() < self.errors else score
      for score in json.loads(example.answer)
    ]
    return written(scores)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The agreement of the scores with the true ones."""
    found = score_lists.reward_anything(example, response)
    return {'agreement': found['reward'], base.OUTCOME: found[base.OUTCOME]}


@dataclasses.dataclass(frozen=True)
@checked
class ThoughtLists(PrincipleLists):
  """PrincipleLists whose scores follow a thought, in RewardAnything's form.

  Response '<think>1e2u1;2e0u0;...</think>{"scores":{"1":3,...},"best-to-worst":
  [1,3,2]}': how often each text meets each of the two principles, the sums, and
  the names from the best to the worst, of equal ones the first. A component
  more, `form` in [0, 1], is tasks.score_lists.reward_anything_form; its weight
  of 0.5 is ours. `target` errs in its thoughts: both counts of a text are drawn
  with chance `errors`, and scores and ranking follow from them.
  Source: as PrincipleLists; how both rewards are weighted there is not known.
  """

  reward_weights: dict[str, float] = base.weights_field(
    agreement=1.0, form=0.5, outcome=0.0
  )

  alphabet = ''.join(
    sorted({*PrincipleLists.alphabet, *'<think>/;-', *'scores best-to-worst'})
  )

  def target(self, example: Example) -> str:
    """Counts, some of which are drawn, their sums, and a ranking by these."""
    stream = draws.Draws('principle lists thoughts', self.seed, example.prompt)
    rubric, _, shown = example.prompt.rstrip(':').partition('\n')
    counts = []
    for text in shown.split('\n')[1::3]:  # '[1]', the text, an empty line
      found = [met(letter, text) for letter in rubric]
      if stream.uniform() < self.errors:
        found = [stream.below(DIGITS + 1) for _ in rubric]
      counts.append(found)
    return thought(rubric, counts)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The agreement of the scores, and the form of the whole."""
    form = score_lists.reward_anything_form(example, response)
    return {**super().reward(example, response), 'form': form}


def thought(rubric: str, counts: list[list[int]]) -> str:
  """The response that follows from the counts of each text, by principle."""
  said = ';'.join(
    str(i) + ''.join(a + str(n) for a, n in zip(rubric, found, strict=True))
    for i, found in enumerate(counts, 1)
  )
  scores = [sum(found) for found in counts]
  ranking = sorted(range(len(scores)), key=lambda i: -scores[i])
  names = json.dumps([i + 1 for i in ranking], separators=(',', ':'))
  judged = f'{{"scores":{written(scores)},"best-to-worst":{names}}}'
  return f'<think>{said}</think>{judged}'


def drawn(stream: draws.Draws) -> str:
  """A response: DIGITS digits."""
  return ''.join(str(stream.below(10)) for _ in range(DIGITS))


def written(scores: list[int]) -> str:
  """The object of scores under the names 1, 2 and so on."""
  named = {str(i): score for i, score in enumerate(scores, 1)}
  return json.dumps(named, separators=(',', ':'))


@dataclasses.dataclass(frozen=True)
@checked
class PrincipleTexts(DrawnTask):
  """Prompt 'eu:', response '24': digits that meet a rubric.

  The rubric is in the meta data, too, where judges read it. Component:
  `outcome`, how often two digits meet the rubric, of MOST; 0 for any other
  text. `target` is drawn digits. Splits have the same prompts.
  """

  num_train: int = ranged(1000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = PrincipleLists.alphabet

  def example(self, split: str, index: int) -> Example:
    """A drawn rubric."""
    base.check_index(self, split, index)
    stream = draws.Draws('principle texts', self.seed, split, index)
    rubric = stream.choice(RUBRICS)
    return Example(
      prompt=f'{rubric}:', answer='', id=index, meta={'rubric': rubric}
    )

  def target(self, example: Example) -> str:
    """Digits of no merit."""
    return drawn(draws.Draws('principle texts teacher', self.seed, example.id))

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The share of MOST, of the whole response."""
    fits = len(response) == DIGITS and set(response) <= set('0123456789')
    score = met(example.meta['rubric'], response) if fits else 0
    return {base.OUTCOME: score / MOST}
