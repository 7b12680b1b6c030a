"""Grounding on a small screen: where is the element with this letter?"""

from collections.abc import Sequence
import dataclasses
import itertools
import string
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example


@dataclasses.dataclass(frozen=True)
@checked
class Boxes(DrawnTask):
  """Prompt: the rows of a screen with elements a, b, .. in '.', then 'b='.

  Elements are boxes of whole cells that do not overlap; columns and rows count
  from 0. The answer is the box asked for, 'left top right bottom' as four
  digits, its last column and row included. Components, besides `difficulty`,
  1 / sqrt(cells of the box) (ours: a small box is hard):
  form 'box': the response is a box, '1234' say.
    outcome: its centre lies in the right box, borders included.
    iou: cells of the intersection over cells of the union.
    edges: harmonic mean of 1 - |x - x*| / size over the four edges.
    format: 1 for four digits of a box on the screen. All are 0 without it.
    reference_reward: the weighted sum for the box that covers the screen.
  form 'points': a list of ranked cells, '12,40': column and row.
    num_answers: how many, 0 for an empty response; -1 if it is malformed, or
    three of its points lie on a line. hit_rank: rank, from 1, of the first
    point in the box; 0: none. outcome: 1 for a hit. format: 1 if well formed.

  The hash of a prompt decides its split.
  Source: "GUI-G1" (reward of boxes; its code counts an intersection one pixel
  wide as 0, here it is its cells), "InfiGUI-G1" (points).
  """

  size: int = ranged(6, 3, 10)  # columns and rows
  num_elements: int = ranged(3, 1, 6)
  form: str = chosen('box', ('box', 'points'))
  num_train: int = ranged(4000, 1, 2**31 - 1)
  num_validation: int = ranged(500, 1, 2**31 - 1)
  num_test: int = ranged(1000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def alphabet(self) -> str:
    """Elements, digits and marks."""
    return '0123456789.,;=' + string.ascii_lowercase[: self.num_elements]

  def example(self, split: str, index: int) -> Example:
    """Redraws until the elements fit and the screen belongs to the split."""
    base.check_index(self, split, index)
    (prompt, box), _ = draws.first_of_split(
      split, 'boxes', (self.seed, split, index), self._problem
    )
    return Example(prompt=prompt, answer=''.join(map(str, box)), id=index)

  def _problem(self, stream):
    """((prompt,), (prompt, wanted box)), or None if elements overlap."""
    boxes = [self._draw(stream) for _ in range(self.num_elements)]
    wanted = stream.below(self.num_elements)
    pairs = itertools.combinations(boxes, 2)
    if any(_cells(_meet(one, two)) for one, two in pairs):
      return None
    prompt = f'{self._screen(boxes)}{string.ascii_lowercase[wanted]}='
    return (prompt,), (prompt, boxes[wanted])

  def target(self, example: Example) -> str:
    """The box; or its middle cell among up to two drawn cells, at any rank."""
    if self.form == 'box':
      return example.answer
    left, top, right, bottom = map(int, example.answer)
    middle = (left + right) // 2, (top + bottom) // 2
    stream = draws.Draws('points', self.seed, example.prompt)
    while True:
      points = [
        (stream.below(self.size), stream.below(self.size))
        for _ in range(stream.below(3))
      ]
      points.insert(stream.below(len(points) + 1), middle)
      if len(points) < 3 or not self.on_a_line(*points):
        return ','.join(f'{x}{y}' for x, y in points)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    right = tuple(map(int, example.answer))
    hard = {'difficulty': _cells(right) ** -0.5}
    if self.form == 'points':
      return self._points(right, response) | hard
    whole = (0, 0, self.size - 1, self.size - 1)
    reference = base.combine(
      self._box(right, whole) | hard | {'reference_reward': 0.0},
      self.reward_weights,
    )
    found = self._box(right, self._read_box(response))
    return found | hard | {'reference_reward': reference}

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(the four numbers of each box i32[B, 4], fours i32[B])."""
    from rl_jax.tasks import device_verifiers

    del tokenizer
    return device_verifiers.pad_rows(
      [list(map(int, e.answer)) for e in examples]
    )

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    from rl_jax.worlds import boxes_device

    del answer_length_B
    read = {'box': boxes_device.box, 'points': boxes_device.points}[self.form]
    return read(self, response_BT, length_B, answer_BA, tokenizer)

  @staticmethod
  def on_a_line(one: Any, two: Any, three: Any) -> Any:
    """Returns whether three points (x, y) are collinear; equal points are."""
    (x0, y0), (x1, y1), (x2, y2) = one, two, three
    return (x1 - x0) * (y2 - y0) == (x2 - x0) * (y1 - y0)

  def _draw(self, stream):
    """A box of at most half the screen in each direction."""
    longest = (self.size + 1) // 2
    width, height = 1 + stream.below(longest), 1 + stream.below(longest)
    left = stream.below(self.size - width + 1)
    top = stream.below(self.size - height + 1)
    return left, top, left + width - 1, top + height - 1

  def _screen(self, boxes):
    rows = [['.'] * self.size for _ in range(self.size)]
    for letter, (left, top, right, bottom) in zip(
      string.ascii_lowercase, boxes, strict=False
    ):
      for row in rows[top : bottom + 1]:
        row[left : right + 1] = letter * (right + 1 - left)
    return ''.join(''.join(row) + ';' for row in rows)

  def _read_box(self, response):
    """Four numbers, or None."""
    digits = [x for x in self._digits(response) if x is not None]
    if len(response) != 4 or len(digits) != 4:
      return None
    left, top, right, bottom = digits
    return tuple(digits) if left <= right and top <= bottom else None

  def _digits(self, text):
    """Cells 0 to size - 1, None for another character."""
    known = string.digits[: self.size]
    return [known.index(c) if c in known else None for c in text]

  def _box(self, right, given):
    if given is None:
      names = (base.OUTCOME, 'iou', 'edges', 'format')
      return dict.fromkeys(names, 0.0)
    shared = _cells(_meet(right, given))
    middle = given[0] + given[2], given[1] + given[3]  # twice the centre
    hit = all(
      2 * low <= x <= 2 * high
      for x, low, high in zip(middle, right[:2], right[2:], strict=True)
    )
    near = [
      1 - abs(a - b) / self.size for a, b in zip(right, given, strict=True)
    ]
    return {
      base.OUTCOME: float(hit),
      'iou': shared / (_cells(right) + _cells(given) - shared),
      'edges': 4 / sum(1 / x for x in near),
      'format': 1.0,
    }

  def _points(self, right, response):
    parts = [self._digits(part) for part in response.split(',')]
    parts = parts if response else []
    formed = all(len(part) == 2 and None not in part for part in parts)
    formed = formed and not any(
      self.on_a_line(*three) for three in itertools.combinations(parts, 3)
    )
    if not formed:
      names = (base.OUTCOME, 'format', 'hit_rank')
      return dict.fromkeys(names, 0.0) | {'num_answers': -1.0}
    left, top, last, bottom = right
    hits = [left <= x <= last and top <= y <= bottom for x, y in parts]
    return {
      base.OUTCOME: float(any(hits)),
      'format': 1.0,
      'hit_rank': hits.index(True) + 1.0 if any(hits) else 0.0,
      'num_answers': float(len(parts)),
    }


def _meet(one, two):
  """The intersection; left > right or top > bottom if it is empty."""
  return (
    max(one[0], two[0]),
    max(one[1], two[1]),
    min(one[2], two[2]),
    min(one[3], two[3]),
  )


def _cells(box):
  left, top, right, bottom = box
  return max(0, right + 1 - left) * max(0, bottom + 1 - top)
