"""GTAlign's welfares of a response that weighs strategies before it answers.

A response is <thinking>..</thinking> <payoff>..</payoff> <analyze>..</analyze>
<response>..</response>; the payoffs are a JSON object of six strategies, each
with the numbers "user" and "LLM".
"""

import json
import math
import re

from rl_jax.tasks import answers
from rl_jax.tasks.base import Example

TAGS = ('thinking', 'payoff', 'analyze', 'response')
# A direct or vague question, and an answer, a question back, or both.
STRATEGIES = tuple(f'{x}_{y}' for x in ('DQ', 'VQ') for y in ('AQ', 'CQ', 'DA'))
_FORM = re.compile(
  r'\s*'.join(f'<{tag}>(?P<{tag}>.*?)</{tag}>' for tag in TAGS), re.DOTALL
)
EPS = 1e-4  # of both welfares
_MOST = 1e100  # of a payoff; no infinity, no integer beyond the floats


def gtalign(example: Example, response: str) -> dict[str, float]:
  """sqrt(U L), the welfares of the user and of the model.

    U = eps + 0.5 a + 0.2 g(words of the answer; 20, 500)
        + 0.3 exp(-characters of the thinking / 500)
    L = eps + 0.2 form + 0.2 payoff + 0.4 a + 0.2 g(all words; 500, 1000)
    g(n; low, high) = sigmoid((n - low) / 200) sigmoid((high - n) / 200)
    payoff = sum over the six strategies of 1[u != l] and
      1[|u - l| > 0.1 max(u, l)], / 12

  a: the last number of the answer is that of the example (a judge there); form
  is 1. A response of another form has reward, U and L 0. outcome: a. A reward
  function: `--reward=rl_jax.tasks.welfare:gtalign=1`; U and L are measured as
  gtalign/user and gtalign/model, which shaping.CobbDouglas(eps=0) combines.
  Source: ulab-uiuc/GTAlign recipe/gamellm/tasks/format.py (tags and payoffs,
  read), math_hard.py (weights, by a digest).
  """
  match = _FORM.fullmatch(response.strip())
  gaps = payoff_share(match['payoff']) if match else None
  if match is None or gaps is None:
    return {'reward': 0.0, 'outcome': 0.0, 'user': 0.0, 'model': 0.0}
  last = answers.extract(match['response'], 'last_number') or ''
  right = float(answers.numbers_equal(last, example.answer, 1e-6))

  def words(text):
    return len(text.split())

  brief = math.exp(-len(match['thinking'].strip()) / 500)
  within = length_gate(words(match['response']), 20, 500)
  user = EPS + 0.5 * right + 0.2 * within + 0.3 * brief
  whole = length_gate(words(response), 500, 1000)
  model = EPS + 0.2 + 0.2 * gaps + 0.4 * right + 0.2 * whole
  reward = math.sqrt(user * model)
  return {'reward': reward, 'outcome': right, 'user': user, 'model': model}


def payoff_share(text: str) -> float | None:
  """The share of twelve tests that the payoffs pass; None: they are not
  payoffs.

  Payoffs that are all equal pass none: nothing was weighed.
  """
  try:
    table = json.loads(text)
    pairs = [(table[x]['user'], table[x]['LLM']) for x in STRATEGIES]
  except (ValueError, TypeError, KeyError, RecursionError):
    return None
  numbers = [x for pair in pairs for x in pair]
  known = all(
    isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) <= _MOST
    for x in numbers
  )
  if not known or len(table) != len(STRATEGIES):
    return None
  far = sum(abs(u - l) > 0.1 * max(abs(u), abs(l)) for u, l in pairs)
  return (sum(u != l for u, l in pairs) + far) / (2 * len(pairs))


def length_gate(count: int, low: int, high: int) -> float:
  """Near 1 between low and high, a half of that at either, smooth."""
  rising = 1 / (1 + math.exp(-(count - low) / 200))
  return rising / (1 + math.exp(min((count - high) / 200, 700)))
