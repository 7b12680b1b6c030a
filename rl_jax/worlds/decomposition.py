"""Rewards of sub-questions: DaSLaM's five parts, on arithmetic.

Source: "Small Language Models Fine-tuned to Coordinate Larger Language Models
improve Complex Reasoning"; LCS2-IIITD/DaSLaM RewardFunction_Context.py, by a
digest. There entities are nouns, and similarity is of sentence embeddings; here
numbers, and counts of characters.
"""

from collections import Counter
from collections.abc import Sequence
import math
import re


def similarity(first: str, second: str) -> float:
  """cos of the counts of characters; 0 if a text is empty."""
  a, b = Counter(first), Counter(second)
  norms = math.sqrt(sum(x * x for x in a.values()))
  norms *= math.sqrt(sum(x * x for x in b.values()))
  return sum(a[x] * b[x] for x in a) / norms if norms else 0.0


def coverage(question: str, parts: Sequence[str]) -> float:
  """1 - |N(q) symmetric difference N(parts)| / |N(q)|, N the set of numbers."""
  wanted = set(re.findall(r'\d+', question))
  found = {x for part in parts for x in re.findall(r'\d+', part)}
  return 1.0 - len(wanted ^ found) / len(wanted)


def consistency(parts: Sequence[str], answers: Sequence[str]) -> float:
  """1/4 sum_i cos(part i, its answer)."""
  pairs = zip(parts, answers, strict=True)
  return 0.25 * sum(similarity(part, answer) for part, answer in pairs)


def guidance(gold: Sequence[str], guided: Sequence[str], alone: str) -> float:
  """sum over gold lines of c/2 if c > cos(line, `alone`), else -1 - c/2.

  c = cos(gold line, guided line); a guided line that is missing has c = 0. The
  second branch falls with similarity, as the released code has it.
  """
  total = 0.0
  for i, line in enumerate(gold):
    c = similarity(line, guided[i]) if i < len(guided) else 0.0
    better = c > similarity(line, alone)
    total += 0.5 * c if better else -1.0 - 0.5 * c
  return total


def operations(gold: Sequence[str], guided: Sequence[str]) -> float:
  """sum over gold lines: 1/2 if the guided one has its operator, else -1/2."""
  total = 0.0
  for i, line in enumerate(gold):
    same = i < len(guided) and _operator(guided[i]) == _operator(line)
    total += 0.5 if same else -0.5
  return total


def _operator(line):
  return ''.join(x for x in line.partition('=')[0] if x in '+-')
