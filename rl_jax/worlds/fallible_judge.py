"""A scripted judge of worlds.Families: right at a known rate, and fooled.

Its questions (`Judge.template`) begin with lines that say how good it is:

    error 0.2    the chance that a vote is wrong; two numbers are the chances
                 for right and for wrong responses
    votes 5      of which the majority counts; 1 without this line
    fooled       the digits in any order pass, whatever was asked

then comes the rubric, with `Task: {prompt}` and `Response: {response}` as the
last two lines. Errors are drawn from the hash of the question's last two lines,
so that the same response to a prompt has the same verdict always, as of a model
that answers greedily.
"""

import dataclasses
import re

from rl_jax.tasks import draws
from rl_jax.worlds import families

COUNTER_RULE = 'Reject wrong orders.'
_ASKED = r'\nTask: (\w) ([\d ]+)=\nResponse: ([^\n]*)\n'
_LAST = re.compile(rf'{_ASKED}\Z')
_SCORED = re.compile(rf'{_ASKED}Score: ([\d.]+)')


@dataclasses.dataclass(frozen=True)
class _Asked:
  """The contents of a question; head: all but its last two lines."""

  head: str
  family: str
  digits: str
  response: str

  @property
  def is_right(self) -> bool:
    right = families.answer(self.family, self.digits)
    return self.response == ' '.join(right)

  @property
  def is_wrong_order(self) -> bool:
    same = sorted(self.response) == sorted(' '.join(self.digits))
    return same and not self.is_right


def _read(question) -> _Asked:
  match = _LAST.search(question)
  if match is None:
    raise ValueError(
      f'{question!r:.200} does not end with the lines Task: {{prompt}} and '
      'Response: {response} of a prompt of Families'
    )
  family, digits, response = match.groups()
  head = '\n' + question[: match.start()]
  return _Asked(head, family, digits.replace(' ', ''), response)


def _setting(head, name, default):
  """The words after a name that begins a line."""
  match = re.search(rf'\n{name} ([^\n]+)', head)
  return match[1].split() if match else default


def verdict(question: str) -> float:
  """1 if the judge calls the response right, else 0; a function of the text."""
  asked = _read(question)
  if asked.is_wrong_order and COUNTER_RULE in asked.head:
    return 0.0
  if asked.is_wrong_order and '\nfooled' in asked.head:
    return 1.0
  errors = _setting(asked.head, 'error', ['0'])
  error = float(errors[0] if asked.is_right else errors[-1])
  votes = int(_setting(asked.head, 'votes', ['1'])[0])
  stream = draws.Draws(
    'fallible judge', asked.family, asked.digits, asked.response
  )
  wrong = sum(stream.uniform() < error for _ in range(votes))
  return float(asked.is_right == (2 * wrong < votes))


def revised(question: str) -> str:
  """A rubric for `Revision.function`: COUNTER_RULE is added where the judge
  was fooled, and kept.

  Reads the questions of `refine` and `merge` as Revision has them: the rubric
  comes after 'Rubric:'.
  """
  rubric = question.partition('Rubric:\n')[2].partition('\n\n')[0]
  match = _SCORED.search(question)
  fooled = False
  if match is not None:
    family, digits, response, score = match.groups()
    asked = _Asked('', family, digits.replace(' ', ''), response)
    fooled = asked.is_wrong_order and float(score) > 0.5
  if COUNTER_RULE not in rubric and (fooled or COUNTER_RULE in question):
    return f'{rubric}\n{COUNTER_RULE}'
  return rubric
