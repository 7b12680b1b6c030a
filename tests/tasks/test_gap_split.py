"""Prompts by how much their responses differ."""

import json

import pytest

from rl_jax.tasks import GapSplit, PreferenceRows
from rl_jax.worlds import Arithmetic

SCORES = ([3, 1], [0.5, 0.5], [-1, 0], [2, 2.25], [0, 4])  # 2, 0, 1, 1/4, 4


@pytest.fixture(scope='module')
def rows(tmp_path_factory):
  path = tmp_path_factory.mktemp('rows') / 'scores.jsonl'
  lines = [
    {'prompt': f'p{i}', 'responses': ['a', f'b{i}'], 'scores': scores}
    for i, scores in enumerate(SCORES)
  ]
  path.write_text(''.join(json.dumps(x) + '\n' for x in lines))
  return PreferenceRows(path=str(path))


def prompts(task):
  return [
    task.example('train', i).prompt for i in range(task.num_prompts('train'))
  ]


def test_sides_by_hand(rows):
  """The median gap is 1, and belongs to the easy side."""
  easy, hard = GapSplit(task=rows), GapSplit(task=rows, side='hard')
  assert prompts(easy) == ['p0', 'p2', 'p4']
  assert prompts(hard) == ['p1', 'p3']
  assert prompts(GapSplit(task=rows, threshold=0.25)) == [
    'p0',
    'p2',
    'p3',
    'p4',
  ]


def test_a_threshold_of_0_keeps_all(rows):
  """Then MPO is DPO; with one above all gaps it is PPO."""
  assert prompts(GapSplit(task=rows, threshold=0.0)) == prompts(rows)
  assert prompts(GapSplit(task=rows, side='hard', threshold=0.0)) == []
  assert prompts(GapSplit(task=rows, side='hard', threshold=9.0)) == prompts(
    rows
  )


def test_examples_are_those_of_the_task(rows):
  """Under their own number; responses, target and reward are the same."""
  easy = GapSplit(task=rows)
  example, own = easy.example('train', 1), rows.example('train', 2)
  assert (example.id, own.id) == (1, 2)
  assert easy.recorded(example) == rows.recorded(own)
  assert easy.target(example) == rows.target(own)
  for text in ('a', 'b2'):
    assert easy.reward(example, text) == rows.reward(own, text)
  assert easy.num_recorded == 2
  assert easy.reward_weights == rows.reward_weights


def test_a_task_with_one_response_is_named():
  with pytest.raises(ValueError, match='of Arithmetic have one to a prompt'):
    GapSplit(task=Arithmetic())
