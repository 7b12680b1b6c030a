"""Word problems of one operation; the response is an expression."""

import dataclasses
from fractions import Fraction
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws, expressions
from rl_jax.tasks.base import Example, Task, TaskTraits
from rl_jax.tasks.templates import PlainTemplate

EXPRESSION_SHOTS = """\
Question: Tom has 3 pens. He buys 5 more. How many pens has Tom?
Answer: 3 + 5

Question: Ann had 9 figs and ate 4. How many figs are left?
Answer: 9 - 4

Question: There are 6 bags with 7 nuts each. How many nuts are there?
Answer: 6 * 7

Question: 20 cards are split into groups of 4. How many groups are there?
Answer: 20 / 4

Question: {question}
Answer:"""

_NAMES = (
  'Ada Ben Carla David Emma Felix Grace Hugo Iris Jonas Karen Leo Mia Noah '
  'Olga Paul Rosa Sam Tina Viktor'
).split()
_THINGS = (
  'apples books coins stamps marbles shells cards pencils stickers buttons '
  'tickets cookies'
).split()

# With x and y from 2 to 20: '+' and '*' have a = x, b = y;
# '-' has a = x + y, b = x; '/' has a = x * y, b = x. c is of no use.
_TEXTS = {
  '+': (
    '{n} has {a} {t}. {m} gives {n} {b} more. How many {t} does {n} have?',
    'There are {a} {t} on the table and {b} {t} on the floor. How many '
    '{t} are there in all?',
    '{n} gave {a} {t} to {m} and has {b} {t} left. How many {t} did {n} '
    'have at first?',
    '{n} found {a} {t} on Monday and {b} {t} on Tuesday. How many {t} did '
    '{n} find in the two days?',
    '{n} has {a} {t}. {m} has {b} {t} more than {n}. How many {t} does '
    '{m} have?',
    'After {n} lost {a} {t}, {b} {t} remained. How many {t} did {n} own '
    'before?',
    '{n}, {c} years old, bought {a} {t} and later {b} {t}. How many {t} '
    'did {n} buy?',
  ),
  '-': (
    '{n} had {a} {t}. {n} gave {b} of them to {m}. How many {t} does {n} '
    'have now?',
    '{n} wants to collect {a} {t} and already has {b}. How many {t} are '
    'still missing?',
    '{n} has {a} {t} and {m} has {b} {t}. How many more {t} does {n} have '
    'than {m}?',
    'There were {b} {t} in a box. {n} put some more in, and now there are '
    '{a}. How many {t} did {n} put in?',
    'A shop had {a} {t} in the morning and {b} {t} in the evening. How '
    'many {t} were sold?',
    '{n} and {m} have {a} {t} together. {b} of them belong to {m}. How '
    'many belong to {n}?',
    '{n} bought {b} {t} and now owns {a}. How many {t} did {n} own before?',
    'In {c} minutes {n} counted {a} {t}. {b} of them were broken. How '
    'many were not broken?',
  ),
  '*': (
    '{n} has {a} boxes with {b} {t} in each. How many {t} does {n} have?',
    'Each of {a} children gets {b} {t}. How many {t} are needed?',
    '{n} reads {a} pages a day. How many pages does {n} read in {b} days?',
    'A ticket costs {a} dollars. How much do {b} tickets cost?',
    '{m} has {b} {t}. {n} has {a} times as many. How many {t} does {n} have?',
    'There are {a} rows of chairs with {b} chairs in every row, and {c} '
    'lamps. How many chairs are there?',
  ),
  '/': (
    '{n} shares {a} {t} equally among {b} friends. How many {t} does each '
    'friend get?',
    '{n} puts {a} {t} into bags of {b}. How many bags does {n} fill?',
    'A rope of {a} meters is cut into {b} equal parts. How many meters '
    'long is each part?',
    '{n} paid {a} dollars for {b} {t} of the same price. What did one of '
    'them cost?',
    '{n} has {a} {t}, which is {b} times as many as {m} has. How many {t} '
    'does {m} have?',
    '{n} walked {a} kilometers in {b} days, the same distance every day. '
    'How far did {n} walk each day?',
  ),
}
_TEMPLATES = [(sign, text) for sign, texts in _TEXTS.items() for text in texts]
_SMALLEST, _NUMBERS = 2, 19  # x and y are 2 to 20


@dataclasses.dataclass(frozen=True)
@checked
class WordProblems(Task):
  """'Ada has 3 coins. Leo gives Ada 4 more. ...' -> '3 + 4'.

  A problem is one of 27 texts with two numbers; a keyed permutation orders all
  9,747, and its positions modulo 10 split them 80/10/10, so that no text has
  the same numbers in two splits. Names and things follow from the problem.

  The first line of the response must be an expression (see `expressions`)
  whose exact value is the answer: a calculator does the arithmetic, so what is
  learned is to understand the question. A bare number is an expression too.

  Components: `outcome`, and `format`: the first line is an expression; with
  clusters also `cluster_id` for methods that compare the answers of a group
  (empo, copo, seed_grpo): equal for expressions of equal value.
  """

  template: PlainTemplate = PlainTemplate(text=EXPRESSION_SHOTS)
  num_validation: int = ranged(900, 1)  # prompts, if the split has as many
  num_test: int = ranged(900, 1)
  clusters: bool = False
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def traits(self) -> TaskTraits:
    """`clusters` is a field."""
    return TaskTraits(clusters=self.clusters)

  def num_prompts(self, split: str) -> int:
    """All problems of the split for train, at most num_... for the others."""
    base.check_split(split)
    owned = draws.num_owned(split, _num_problems())
    limits = {'validation': self.num_validation, 'test': self.num_test}
    return min(owned, limits.get(split, owned))

  def example(self, split: str, index: int) -> Example:
    """The index-th problem of the split in the permuted order."""
    base.check_index(self, split, index)
    position = draws.owned(split, index)
    number, x = divmod(_permutation().backward(position), _NUMBERS)
    number, y = divmod(number, _NUMBERS)
    operation, text = _TEMPLATES[number]
    x, y = x + _SMALLEST, y + _SMALLEST
    a, b = {'-': (x + y, x), '/': (x * y, x)}.get(operation, (x, y))
    draw = draws.Draws('word problem', number, x, y)
    name, other = draw.choice(_NAMES), draw.choice(_NAMES)
    while other == name:
      other = draw.choice(_NAMES)
    question = text.format(
      a=a, b=b, c=draw.below(30) + 5, n=name, m=other, t=draw.choice(_THINGS)
    )
    target = f'{a} {operation} {b}'
    return Example(
      **self.template.fields(question),
      answer=str(expressions.evaluate(target)[0]),
      id=index,
      meta={'question': question, 'expression': target},
    )

  def target(self, example: Example) -> str:
    """The expression (a space separates it from the prompt)."""
    return f' {example.meta["expression"]}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Judges the first line of the text before the end token."""
    right = Fraction(example.answer)
    return expressions.judged(response, right, self.clusters)


def _num_problems() -> int:
  return len(_TEMPLATES) * _NUMBERS**2


@functools.lru_cache
def _permutation() -> draws.Permutation:
  return draws.Permutation(_num_problems(), 'word problems')
