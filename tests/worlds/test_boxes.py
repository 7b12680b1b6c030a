"""Boxes and points on a small screen, judged twice."""

import itertools

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import Example
from rl_jax.tasks.base import SPLITS
from rl_jax.worlds import Boxes

WEIGHTS = {'outcome': 1.0, 'iou': 0.25, 'edges': 0.125}
BOX = Boxes(reward_weights=WEIGHTS)
POINTS = Boxes(form='points')
PROBLEM = Example(prompt='', answer='1123', id=0)  # 2 columns of 3 rows


@pytest.mark.parametrize(
  ('response', 'expected'),
  [
    ('1123', (1, 1, 1, 1)),
    # The centre 1.5, 1.5 is inside; 4 of 6 cells; edges 1, 1, 1, 5/6.
    ('1122', (1, 4 / 6, 4 / (3 + 6 / 5), 1)),
    # Two of 10 cells; centre 1.5, .5 is outside; edges 1, 5/6, 1, 4/6.
    ('1021', (0, 2 / 8, 4 / (2 + 6 / 5 + 6 / 4), 1)),
    # A corner is a border: the cell 2, 3 hits.
    ('2323', (1, 1 / 6, 4 / (2 + 6 / 5 + 6 / 4), 1)),
    ('5555', (0, 0, 4 / (6 / 2 + 6 / 2 + 6 / 3 + 6 / 4), 1)),
    *((text, (0, 0, 0, 0)) for text in ('2113', '1321', '112', '11233')),
    *((text, (0, 0, 0, 0)) for text in ('', '1126', 'abcd', '1,12')),
  ],
)
def test_boxes_by_hand(response, expected):
  """(outcome, iou, edges, format); columns and rows below 6."""
  found = BOX.reward(PROBLEM, response)
  names = ('outcome', 'iou', 'edges', 'format')
  assert [found[n] for n in names] == pytest.approx(expected)
  assert found['difficulty'] == pytest.approx(6**-0.5)
  # The whole screen: centre 2.5 is beyond column 2; 6 of 36 cells.
  near = 4 / (6 / 5 + 6 / 5 + 6 / 3 + 6 / 4)
  assert found['reference_reward'] == pytest.approx(0.25 / 6 + 0.125 * near)


@pytest.mark.parametrize(
  ('response', 'expected'),
  [
    ('12', (1, 1, 1, 1)),
    ('00,12', (1, 1, 2, 2)),
    ('23,00,01', (1, 1, 1, 3)),
    ('00,55', (0, 1, 0, 2)),
    ('12,12', (1, 1, 1, 2)),
    ('', (0, 1, 0, 0)),
    *((text, (0, 0, 0, -1)) for text in ('00,11,22', '00,12,24', '5,12')),
    *((text, (0, 0, 0, -1)) for text in ('12,', ',12', '126', '12;00', '16')),
    # Any three of five: 11, 31, 51 with others between.
    ('11,02,31,04,51', (0, 0, 0, -1)),
  ],
)
def test_points_by_hand(response, expected):
  """(outcome, format, hit_rank, num_answers)."""
  found = POINTS.reward(PROBLEM, response)
  names = ('outcome', 'format', 'hit_rank', 'num_answers')
  assert tuple(found[n] for n in names) == expected


def test_screens_show_the_boxes_and_splits_share_none():
  """Cells with the letter are those of the answer; targets are right."""
  prompts = {}
  for split in SPLITS:
    for i in range(100):
      example = BOX.example(split, i)
      *rows, (letter, _) = example.prompt.split(';')
      left, top, right, bottom = map(int, example.answer)
      cells = itertools.product(range(left, right + 1), range(top, bottom + 1))
      shown = {
        (x, y) for y in range(6) for x in range(6) if rows[y][x] == letter
      }
      assert shown == set(cells)
      for task in (BOX, POINTS):
        assert task.reward(example, task.target(example))['outcome'] == 1
      assert prompts.setdefault(example.prompt, split) == split


def test_targets_have_one_to_three_points():
  """The middle of the box at every rank."""
  found = set()
  for i in range(100):
    example = POINTS.example('train', i)
    rewards = POINTS.reward(example, POINTS.target(example))
    found.add((rewards['num_answers'], rewards['hit_rank']))
  assert found >= {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)}


def random_rows(rng, task, examples):
  """Texts: any characters, moved boxes or points, and points with a gap."""
  for i, example in enumerate(examples):
    if i % 3 == 0:
      letters = task.alphabet
      yield ''.join(rng.choice(list(letters), rng.integers(0, 12)))
    elif task.form == 'box':
      moved = [int(x) + rng.integers(-1, 2) for x in example.answer]
      yield ''.join(str(max(x, 0)) for x in moved)
    else:
      points = rng.integers(0, 6, (rng.integers(1, 5), 2))
      text = ','.join(f'{x}{y}' for x, y in points)
      place = rng.integers(len(text))
      yield text if i % 3 == 1 else text[:place] + text[place + 1 :]


@pytest.mark.parametrize('task', [BOX, POINTS], ids=['box', 'points'])
def test_verifiers_agree(task):
  """11,000 rows with padding inside and any tokens after the end."""
  tokenizer, rng = CharTokenizer(task.alphabet), np.random.default_rng(0)
  examples = [task.example('test', i) for i in range(100)] * 110
  texts = list(random_rows(rng, task, examples))
  tokens = rng.integers(0, tokenizer.vocab_size, (11_000, 13)).astype(np.int32)
  length = np.full(11_000, 13, np.int32)
  for i, text in enumerate(texts):
    ids = [*tokenizer.encode(text), 1]
    if i % 7 == 0:
      ids.insert(rng.integers(len(ids)), 0)
    tokens[i, : len(ids)] = ids[:13]
  answers = task.device_answers(examples, tokenizer)
  found = jax.device_get(
    jax.jit(lambda *x: task.reward_device(*x, tokenizer))(
      tokens, length, *answers
    )
  )
  for i, example in enumerate(examples):
    expected = task.reward(example, texts[i])
    mine = {name: x[i] for name, x in found.items()}
    assert mine == pytest.approx(expected, rel=1e-5), (example, texts[i])
  assert 100 < found['outcome'].sum() < 5500
