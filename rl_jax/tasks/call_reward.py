"""ToolRL's reward of function calls: form, names, parameters and values."""

from collections import Counter
from collections.abc import Hashable, Sequence
import functools
import json
import re
from typing import Any

from rl_jax.tasks.base import COLUMNS, Example

_TAGS = {
  'tool_call': r'<tool_call>\n.*?\n</tool_call>',
  'response': r'<response>.*?</response>',
}
_CALLS = re.compile(r'<tool_call>\n(.*?)\n</tool_call>', re.DOTALL)


def toolrl(example: Example, response: str) -> dict[str, float]:
  """R = format + correct, format in {0, 1}, correct in [-3, 3].

  format: the text is <think>..</think>, then the parts <tool_call> and
    <response> that the answer has, and nothing else. correct: see `correct`; 0
    if the answer has no call.
  A reward function: `--reward=rl_jax.tasks.call_reward:toolrl=1` for a task
  whose answers are such texts, with a call as {"name": .., "parameters": {..}}
  on each line. --method=toolrl finds its components toolrl/format and
  toolrl/correct.
  Source: "ToolRL: Reward is All Tool Learning Needs"; qiancheng0/ToolRL
  rlla.py, without its variants.
  """
  text = response.strip()
  gold, found = _calls(example.answer), _calls(text)
  own = 0.0
  if gold is not None:
    own = -3.0 if found is None else correct(gold, found)
  well_formed = float(is_well_formed(text, example.answer))
  return {
    'reward': well_formed + own,
    'format': well_formed,
    'correct': own,
    'outcome': float(gold == found),
  }


def api_bank(example: Example, response: str) -> dict[str, float]:
  """1 if one of the calls is that of the column `answer`, else 0.

  A line of JSON between the last <tool_call> and </tool_call>, or of the whole
  text without them, is a call; without name and parameters it is read as the
  parameters of the right name. Further calls do not count. The column has
  {"name": .., "parameters": {..}}, or a list whose first value counts. A reward
  function for a task whose `columns` have it.
  Source: qiancheng0/ToolRL, benchmarks/API-Bank, evaluate.py and generate.py.
  """
  gold = example.meta[COLUMNS]['answer']
  gold = gold[0] if isinstance(gold, (list, tuple)) else gold
  wanted = {'name': gold['name'], 'parameters': gold['parameters']}
  text = response.rpartition('<tool_call>')[2].partition('</tool_call>')[0]
  solved = False
  for line in text.strip().split('\n'):
    try:
      call = json.loads(line)
    except (ValueError, RecursionError):
      continue
    if not isinstance(call, dict):
      continue
    if not {'name', 'parameters'} <= set(call):
      call = {'name': gold['name'], 'parameters': call}
    found = {name: call[name] for name in wanted}
    solved = solved or found == wanted
  return {'reward': float(solved), 'outcome': float(solved)}


def is_well_formed(text: str, label: str) -> bool:
  """Returns whether a text has the parts of the label, each once, in its
  order.
  """
  parts = [r'<think>.*?</think>']
  for name, pattern in _TAGS.items():
    if f'<{name}>' not in label:
      continue
    parts.append(pattern)
    if text.count(f'<{name}>') != 1 or text.count(f'</{name}>') != 1:
      return False
  return re.fullmatch('\n'.join(parts), text, re.DOTALL) is not None


def correct(
  gold: Sequence[dict[str, Any]],
  calls: Sequence[dict[str, Any]],
  as_a_whole: bool = False,
) -> float:
  """6 s / S - 3, and 3 where the calls are equal, in order.

    s = J(names) + sum over gold calls of the best J(parameters) + equal values
    S = 1 + sum over gold calls of (1 + number of parameters)

  Each gold call in turn takes the best unused call of its name, the first of
  equal ones; one that scores 0 matches nothing. J: jaccard. as_a_whole: a call
  has all of its points if its parameters and values are right, else none.
  """
  if list(gold) == list(calls):
    return 3.0
  score = jaccard([c['name'] for c in gold], [c['name'] for c in calls])
  most, unused = 1, list(calls)
  for call in gold:
    own = call['parameters']
    most += 1 + len(own)
    scores = [
      _matched(own, other['parameters'], as_a_whole)
      if other['name'] == call['name']
      else 0.0
      for other in unused
    ]
    best = max(scores, default=0.0)
    if best > 0.0:
      score += best
      unused.pop(scores.index(best))
  return 6.0 * score / most - 3.0


def _matched(own, other, as_a_whole):
  """Points of a call for its parameters."""
  if as_a_whole:
    return (1.0 + len(own)) * (own == other)
  equal = sum(own[k] == x for k, x in other.items() if k in own)
  return jaccard(list(own), list(other)) + equal


def _all_or_nothing(gold, found):
  return 3.0 if list(gold) == list(found) else -3.0


# How finely correctness is counted; but for 'fine' reconstructed.
SCORES = {
  'fine': correct,
  'intermediate': functools.partial(correct, as_a_whole=True),
  'coarse': _all_or_nothing,
}
GRANULARITIES = tuple(SCORES)


def jaccard(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
  """|A and B| / |A or B| of multisets, 1 if both are equal."""
  if list(one) == list(other):
    return 1.0
  shared = sum((Counter(one) & Counter(other)).values())
  return shared / (len(one) + len(other) - shared)


def _calls(text):
  """The calls of a text, or None if it has none or one is not as it should."""
  match = _CALLS.search(text)
  if match is None:
    return None
  found = []
  for line in match[1].split('\n'):
    try:
      call = json.loads(line)
    except (ValueError, RecursionError):
      return None
    parts = isinstance(call, dict) and {'name', 'parameters'} <= set(call)
    if not parts or not isinstance(call['parameters'], dict):
      return None
    if not isinstance(call['name'], str):
      return None
    found.append(call)
  return found
