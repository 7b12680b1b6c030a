"""Modes that responses choose by how they begin."""

import dataclasses
import json

import pytest

from rl_jax.tasks import InMode, OpenedModes, QuestionAnswer

OPENINGS = {'short': '<short>', 'think': '<think>'}


@pytest.fixture(name='task')
def _task(tmp_path):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': '1+1?', 'answer': '2'}))
  own = QuestionAnswer(sources={'train': str(path)}, extract='boxed')
  return OpenedModes(task=own, openings=OPENINGS)


@pytest.mark.parametrize(
  ('response', 'mode'),
  [
    ('<short>\\boxed{2}', 0.0),
    (' \n<think>Hm.</think>\\boxed{2}', 1.0),
    ('\\boxed{2} <short>', 2.0),
    ('<shor', 2.0),
    ('', 2.0),
  ],
)
def test_the_beginning_says_the_mode(task, response, mode):
  found = task.reward(task.example('train', 0), response)
  assert found['mode'] == mode
  assert found['outcome'] == float('boxed{2}' in response)


def test_a_mode_that_is_given(task):
  """The prompt has its opening, and the response continues it."""
  one = InMode(task, 'think')
  example = one.example('train', 0)
  assert example.prefill == '<think>'
  assert one.reward(example, 'a</think>\\boxed{2}')['mode'] == 1.0


def test_modes_that_cannot_be(task):
  for openings in ({}, {'short': '<short>'}, {'a': '<a>', 'b': ''}):
    with pytest.raises(ValueError, match='expected two modes at least'):
      dataclasses.replace(task, openings=openings)
  with pytest.raises(ValueError, match="'<a' begins another one"):
    dataclasses.replace(task, openings={'a': '<a', 'b': '<ab'})
