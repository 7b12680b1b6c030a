"""Grounding of several boxes: where are the elements with this letter?"""

import dataclasses
import re

import numpy as np
from scipy.optimize import linear_sum_assignment

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

Box = tuple[int, int, int, int]  # left, top, right, bottom; the last included
MOST = 3  # boxes of one letter
_NONE = -2.0  # overlap of a true box without a match
_LETTERS = 'ab'


def cells(box: Box) -> int:
  """The cells of a box; 0 of an empty one."""
  left, top, right, bottom = box
  return max(0, right + 1 - left) * max(0, bottom + 1 - top)


def generalised_overlap(one: Box, other: Box) -> float:
  """GIoU: I / U - (H - U) / H, from -1 to 1.

  I, U, H: cells of the intersection, of the union, and of the smallest box
  that holds both.
  """
  lows = [(max(x), min(x)) for x in zip(one[:2], other[:2], strict=True)]
  highs = [(min(x), max(x)) for x in zip(one[2:], other[2:], strict=True)]
  shared, hull = (
    cells((lows[0][i], lows[1][i], highs[0][i], highs[1][i])) for i in range(2)
  )
  union = cells(one) + cells(other) - shared
  return shared / union - (hull - union) / hull


def matched(true: list[Box], given: list[Box]) -> list[float]:
  """The overlap of each true box with its match, _NONE without one.

  The assignment of the least sum of |edges|_1 - GIoU.
  """
  found = [_NONE] * len(true)
  if not given:
    return found
  overlap_MK = np.array(
    [[generalised_overlap(a, b) for b in given] for a in true]
  )
  distance_MK = np.abs(np.array(true)[:, None] - np.array(given)[None]).sum(2)
  for m, k in zip(
    *linear_sum_assignment(distance_MK - overlap_MK), strict=True
  ):
    found[m] = float(overlap_MK[m, k])
  return found


@dataclasses.dataclass(frozen=True)
@checked
class ManyBoxes(DrawnTask):
  """Prompt: the rows of a screen with elements a and b in '.', then 'a='.

  The answer is every box of that letter, 'left top right bottom' as four digits
  with commas between boxes, as '0011,3344'; boxes do not touch. Components:
    outcome: 1 for exactly these boxes, in any order.
    format: 1 for boxes on the screen, six at most, and nothing else.
    giou_0, giou_1, giou_2: of the true boxes in order, the generalised overlap
      with the box that is matched to it; -2 without a match.
    num_boxes: how many true boxes there are.
  The hash of a prompt decides its split.
  Source: "Vision-R1"; jefferyZhan/Griffon visionr1_qwen.py, by a digest.
  """

  size: int = ranged(5, 4, 10)  # columns and rows
  most: int = ranged(2, 1, MOST)  # boxes of a letter
  num_train: int = ranged(4000, 1, 2**31 - 1)
  num_validation: int = ranged(300, 1, 2**31 - 1)
  num_test: int = ranged(300, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '0123456789.,;=' + _LETTERS

  def example(self, split: str, index: int) -> Example:
    """Redraws until the boxes do not touch and the screen is of the split."""
    base.check_index(self, split, index)
    (prompt, answer), _ = draws.first_of_split(
      split, 'many boxes', (self.seed, split, index), self._problem
    )
    return Example(prompt=prompt, answer=answer, id=index)

  def _problem(self, stream):
    """((prompt,), (prompt, answer)), or None if boxes touch."""
    letters = [
      letter for letter in _LETTERS for _ in range(1 + stream.below(self.most))
    ]
    boxes = [self._draw(stream) for _ in letters]
    rows = [['.'] * self.size for _ in range(self.size)]
    for place, (letter, box) in enumerate(zip(letters, boxes, strict=True)):
      left, top, right, bottom = box
      wider = (left - 1, top - 1, right + 1, bottom + 1)
      if any(_meet(wider, other) for other in boxes[:place]):
        return None
      for row in rows[top : bottom + 1]:
        row[left : right + 1] = letter * (right + 1 - left)
    wanted = stream.choice(_LETTERS)
    screen = ''.join(''.join(row) + ';' for row in rows)
    own = sorted(b for x, b in zip(letters, boxes, strict=True) if x == wanted)
    answer = ','.join(''.join(map(str, box)) for box in own)
    prompt = f'{screen}{wanted}='
    return (prompt,), (prompt, answer)

  def _draw(self, stream):
    """A box of two cells at most in each direction."""
    left, top = (stream.below(self.size) for _ in range(2))
    right, bottom = (
      min(x + stream.below(2), self.size - 1) for x in (left, top)
    )
    return left, top, right, bottom

  def target(self, example: Example) -> str:
    """All boxes, from left to right."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    true, given = self._boxes(example.answer), self._boxes(response)
    overlaps = matched(true, given)
    overlaps += [_NONE] * (MOST - len(overlaps))
    return {
      base.OUTCOME: float(sorted(given) == sorted(true)),
      'format': float(bool(given)),
      **{f'giou_{m}': x for m, x in enumerate(overlaps)},
      'num_boxes': float(len(true)),
    }

  def _boxes(self, text) -> list[Box]:
    """The boxes of a text; none of one that holds anything else."""
    if not re.fullmatch(r'\d{4}(,\d{4}){0,5}', text, re.ASCII):
      return []
    found = []
    for part in text.split(','):
      left, top, right, bottom = map(int, part)
      if left > right or top > bottom or max(right, bottom) >= self.size:
        return []
      found.append((left, top, right, bottom))
    return found


def _meet(one, other):
  """Returns whether two boxes share a cell."""
  return all(one[i] <= other[i + 2] and other[i] <= one[i + 2] for i in (0, 1))
