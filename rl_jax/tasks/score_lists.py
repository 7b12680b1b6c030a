"""Scores that a text gives to responses: reading, and rewards of such texts."""

import collections
from collections.abc import Sequence
import itertools
import json
import math
import re

from rl_jax.tasks import numerals
from rl_jax.tasks.base import Example

_THOUGHT = re.compile(r'<think>(.*?)</think>', re.DOTALL)
_OBJECT = re.compile(r'\{[^{}]*\}')
_FRAC = re.compile(r'\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}')
# Of '7-8' the last number is 8: a dash after a digit is not a sign.
_SCORE = re.compile(
  rf'((?:(?<!\d)-)?)({numerals.CHAIN})'
  rf'(?:\s?(?:/|out\s?of|of)\s?({numerals.CHAIN}))?',
  re.ASCII | re.IGNORECASE,
)
# What json and float raise for texts that hold no such numbers, as for 10^400
# and a thousand brackets.
_NOT_READ = (KeyError, TypeError, ValueError, OverflowError, RecursionError)


def last_score(
  text: str, span: tuple[float, float] | None = None
) -> float | None:
  """The last number of a text, 5 for 5/10 and 5 out of 10; None: not read.

  span: the least and the largest score. A number outside is not read; of
  another whole than the largest score it is that share, where the least is 0:
  0.5 for 5/10 of (0, 1).
  """
  text = numerals.spelled(_FRAC.sub(r'\1/\2', text))
  matches = collections.deque(_SCORE.finditer(text), maxlen=1)
  if not matches:
    return None
  sign, *digits = matches[0].groups()
  plain = []
  for found in digits:
    read = numerals.plain_digits(found) if found else ''
    if read is None:
      return None
    plain.append(read)
  value = float(sign + plain[0])
  if span is not None and plain[1] and float(plain[1]) != span[1]:
    whole = float(plain[1])
    value = value / whole * span[1] if whole and span[0] == 0 else math.nan
  low, high = span or (-math.inf, math.inf)
  return value if math.isfinite(value) and low <= value <= high else None


def named_scores(
  text: str, count: int, span: tuple[float, float] | None = None
) -> list[float] | None:
  """Scores of the names 1 to count in the last JSON object; None if one is
  missing.

  span: the least and the largest score; others are not read.
  """
  objects = _OBJECT.findall(text)
  try:
    found = json.loads(objects[-1]) if objects else {}
    scores = [float(found[str(i)]) for i in range(1, count + 1)]
  except _NOT_READ:
    return None
  low, high = span or (-math.inf, math.inf)
  inside = all(math.isfinite(x) and low <= x <= high for x in scores)
  return scores if inside else None


def urpo(example: Example, response: str) -> dict[str, float]:
  """(concordant - discordant) / pairs of the response's scores, in [-1, 1].

  The answer of the example is a JSON list of the true scores of the responses
  that its prompt shows under the names 1, 2, ...; the response ends with an
  object {name: score}. Without one the reward is -1. outcome: all in order.
  A reward function: `--reward=rl_jax.tasks.score_lists:urpo=1`.
  Source: "URPO: Unified Reward & Policy Optimization", reconstructed: whether
  its agreement is this tau is not known. Responses to other prompts are judged
  by the policy itself: Judge(path='').
  """
  gold, found = _both(example, response)
  if found is None:
    return {'reward': -1.0, 'outcome': 0.0}
  signs = [(a - b) * (x - y) for (a, x), (b, y) in _pairs(gold, found)]
  tau = sum((x > 0) - (x < 0) for x in signs) / len(signs)
  return {'reward': tau, 'outcome': float(tau == 1.0)}


def reward_anything(example: Example, response: str) -> dict[str, float]:
  """1 - sum of penalties / sum of weights over pairs, in [0, 1].

  A pair weighs 1 + |difference of its true scores|; the penalty is the weight
  where the response reverses it, half of it where only the response has a tie.
  Form as in `urpo`; without scores 0. outcome: no penalty. A reward function:
  `--reward=rl_jax.tasks.score_lists:reward_anything=1`; the one of the form is
  beside it, how both were weighted in training is not known.
  Source: zhuohaoyu/RewardAnything processing.py
  (calculate_weighted_pair_penalty).
  """
  gold, found = _both(example, response)
  if found is None:
    return {'reward': 0.0, 'outcome': 0.0}
  penalty = total = 0.0
  for (a, x), (b, y) in _pairs(gold, found):
    weight = 1 + abs(a - b)
    reverses = (a - b) * (x - y) < 0
    penalty += weight * (1.0 if reverses else 0.5 * (a != b and x == y))
    total += weight
  return {'reward': 1 - penalty / total, 'outcome': float(penalty == 0.0)}


def reward_anything_form(example: Example, response: str) -> float:
  """A score in [0, 1] of thinking, then a JSON object of scores and a ranking.

    0.15  <think> and </think> (one of them only: 0.05)
    0.05  more than 50 characters between them
    0.20  a JSON object after them; 0.15 if other text surrounds it
    0.10  its key "scores"            0.10  its key "best-to-worst"
    0.20  times the share of the names 1, 2, ... that have a score
    0.20  times the share of neighbours in the ranking that the scores order
          alike, equal scores included

  The answer of the example is as in `urpo`. A reward function:
  `--reward=rl_jax.tasks.score_lists:reward_anything_form=1`.
  Source: zhuohaoyu/RewardAnything processing.py (format_reward); its last test
  is not in the released file, and reconstructed here; its repair of malformed
  JSON is left out.
  """
  thought = _THOUGHT.search(response)
  tags = ('<think>' in response) + ('</think>' in response)
  total = (0.0, 0.05, 0.15)[tags]
  total += 0.05 * bool(thought and len(thought[1].strip()) > 50)
  found, alone = _object(_THOUGHT.sub('', response).strip())
  if not found:
    return total
  total += 0.20 if alone else 0.15
  scores, ranking = found.get('scores'), found.get('best-to-worst')
  total += 0.10 * ('scores' in found) + 0.10 * ('best-to-worst' in found)
  scores = scores if isinstance(scores, dict) else {}
  names = {str(i + 1) for i in range(len(json.loads(example.answer)))}
  total += 0.20 * len(names & scores.keys()) / len(names)
  if isinstance(ranking, list):
    total += 0.20 * _agreement(scores, ranking)
  return total


def _object(text):
  """(the JSON object of a text or {}, whether it is all of the text)."""
  inside = text[text.find('{') : text.rfind('}') + 1]
  for part in (text, inside):
    try:
      found = json.loads(part)
    except (ValueError, RecursionError):
      continue
    return (found if isinstance(found, dict) else {}), part == text
  return {}, False


def _agreement(scores, ranking):
  """Share of neighbours in the ranking whose scores do not rise."""
  try:
    given = [float(scores[str(name)]) for name in ranking]
  except _NOT_READ:
    return 0.0
  if not all(map(math.isfinite, given)):
    return 0.0
  steps = [a >= b for a, b in itertools.pairwise(given)]
  return sum(steps) / len(steps) if steps else 0.0


def _both(example, response) -> tuple[list[float], Sequence[float] | None]:
  """(true scores, those of the response or None)."""
  gold = [float(x) for x in json.loads(example.answer)]
  if len(gold) < 2:
    raise ValueError(
      f'the answer {example.answer!r:.80} holds no two true scores'
    )
  return gold, named_scores(response, len(gold))


def _pairs(gold, found):
  """((true, given), (true, given)) of all pairs."""
  return itertools.combinations(zip(gold, found, strict=True), 2)
