"""KeyDoor with sub-goals of a file, and a table of answers."""

import json

import pytest

from rl_jax.tasks.sources import BadRowError
from rl_jax.worlds import AdviceTable, GuidedKeyDoor, guided_key_door
from rl_jax.worlds.guided_key_door import SITUATIONS, followed


def lines(tmp_path, *rows):
  path = tmp_path / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


def test_followed_by_hand():
  """cos 1, 1 / sqrt 2 and 0; sigmoid(9), sigmoid(6.07), sigmoid(-1)."""
  assert followed('K', ['K']) == pytest.approx(0.99987661, rel=1e-6)
  assert followed('K', ['K', 'D']) == pytest.approx(0.9976966, rel=1e-6)
  assert followed('G', ['K', 'D']) == pytest.approx(0.26894142, rel=1e-6)
  assert followed('G', []) == pytest.approx(0.26894142, rel=1e-6)


def right(path):
  """Advice that names what is missing, whatever happened before."""
  return lines(
    path,
    *(
      {'situation': x, 'subgoal': 'KDG'['-ko'.index(x[0])]} for x in SITUATIONS
    ),
  )


def played(task, example):
  """(observations, rewards) of a shortest solution."""
  episode = task.start(example)
  inner = task.grid
  seed = example.meta['seed']
  replies = [episode.reset(seed)]
  replies += [episode.step(word) for word in inner.actions(example)]
  return [r.observation for r in replies], [r.rewards for r in replies[1:]]


def test_a_solution_with_right_advice(tmp_path):
  """The first letter is that of the key; every sub-goal that had its four turns
  was followed, and the hands are never shown.
  """
  task = GuidedKeyDoor(path=right(tmp_path), explore=0.0, stride=1)
  for index in range(10):
    said, rewards = played(task, task.example('train', index))
    assert said[0][-2:] == 'K>'
    held = 0.0
    for text, reward in zip(said[1:], rewards, strict=True):
      held += reward['progress']
      assert text[-2:] == 'KDG'[int(2 * held)] + '>'
    assert rewards[-1]['outcome'] == 1.0
    assert rewards[-1]['followed'] > 0.9
    assert sum(r['progress'] for r in rewards) == 1.0


def test_a_stride_has_one_sub_goal(tmp_path):
  """`followed` is 0 within it."""
  task = GuidedKeyDoor(path=right(tmp_path), explore=0.0, stride=4)
  episode = task.start(task.example('train', 0))
  first = episode.reset(task.example('train', 0).meta['seed'])
  found = [episode.step('x') for _ in range(8)]  # nothing can be done
  assert {r.observation[-2] for r in (first, *found)} == {'K'}
  values = [r.rewards['followed'] for r in found]
  assert values[3] == values[7] == pytest.approx(0.26894142, rel=1e-6)
  assert not any(values[:3] + values[4:7])


def test_without_advice_no_letter_changes():
  """E0: rewards are those of the same actions with advice."""
  plain, advised = GuidedKeyDoor(advised=False), GuidedKeyDoor()
  example = plain.example('train', 3)
  said, rewards = played(plain, example)
  assert {text[-2] for text in said} == {'n'}
  others = played(advised, example)
  assert {text[-2] for text in others[0]} <= set('KDG')
  for one, other in zip(rewards, others[1], strict=True):
    assert one['outcome'] == other['outcome']
    assert one['progress'] == other['progress']


def test_explored_advice_is_drawn_and_the_same_for_a_seed(tmp_path):
  task = GuidedKeyDoor(path=right(tmp_path), explore=1.0, stride=1)
  examples = [task.example('train', i) for i in range(20)]
  first = {played(task, x)[0][0][-2] for x in examples}
  assert first == set('KDG')
  assert played(task, examples[0]) == played(task, examples[0])


def test_bad_rows_are_named(tmp_path):
  path = lines(tmp_path, {'situation': '-x-', 'subgoal': 'K'})
  task = GuidedKeyDoor(path=path)
  with pytest.raises(BadRowError, match="situation '-x-'"):
    task.start(task.example('train', 0)).reset(0)
  table = AdviceTable(path=lines(tmp_path, {'prompt': 'a', 'scores': {}}))
  with pytest.raises(BadRowError, match='prompt .a. and scores'):
    table.num_prompts('train')


def test_situations_are_all_that_can_be():
  assert len(SITUATIONS) == len(set(SITUATIONS)) == 19
  assert guided_key_door.FIRST == SITUATIONS[0] == '-n-'


def test_answers_are_worth_what_the_file_says(tmp_path):
  row = {'prompt': '-n-:', 'scores': {'k': 0.9, 'd': 0.2}}
  task = AdviceTable(path=lines(tmp_path, row))
  example = task.example('validation', 0)
  assert task.target(example) == 'k'
  for text, score, outcome in (('k', 0.9, 1), ('d', 0.2, 0), ('x', 0.0, 0)):
    found = task.reward(example, text)
    assert found == {'score': score, 'outcome': outcome}
