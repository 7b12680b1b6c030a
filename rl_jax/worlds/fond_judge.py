"""A scripted judge of worlds.FamilyChains that is fond of long texts.

Its questions (`Judge.template`) are three lines:

    fondness 0.5
    Task: {prompt}
    Response: {response}

    score = (right + fondness * min(digits / MOST, 1)) / (1 + fondness)

right: the share of the places of the text's last number that have the digit of
the right answer, of the longer one of both; digits: of the whole text. A text
without a number, as '[NULL]', has 0.
"""

import re

from rl_jax.worlds import family_chains

MOST = 12  # digits
TEMPLATE = 'fondness 0.5\nTask: {prompt}\nResponse: {response}\n'
_ASKED = re.compile(r'fondness ([\d.]+)\nTask: ([^\n]*)\nResponse: ([^\n]*)\n')
_NUMBER = re.compile(r'\d+')


def score(question: str) -> float:
  """Returns the score in [0, 1] of a question; a function of the text.

  Raises: ValueError for a text that is not such a question.
  """
  match = _ASKED.fullmatch(question)
  if match is None:
    raise ValueError(
      f'{question!r:.200} is not a question of fond_judge.TEMPLATE'
    )
  fondness, prompt, response = float(match[1]), match[2], match[3]
  numbers = _NUMBER.findall(response)
  if not numbers:
    return 0.0
  answer, last = family_chains.solution(prompt)[-1], numbers[-1]
  equal = sum(a == b for a, b in zip(answer, last, strict=False))
  right = equal / max(len(answer), len(last))
  length = min(sum(map(len, numbers)) / MOST, 1.0)
  return (right + fondness * length) / (1 + fondness)
