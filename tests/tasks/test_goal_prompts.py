"""Prompts that name the score of the chosen response."""

import json

import pytest

from rl_jax.tasks import GoalPrompts, PreferenceRows, RulePairs
from rl_jax.worlds import Arithmetic

PAIRS = RulePairs(Arithmetic(digits=1, signed=False))


def test_every_pair_is_two():
  """Opposite labels under the two goals; the same responses and answer."""
  task = GoalPrompts(PAIRS)
  assert task.num_prompts('train') == 2 * PAIRS.num_prompts('train')
  for index in (0, 3):
    plain = PAIRS.example('train', index)
    right, wrong = PAIRS.recorded(plain)
    for goal, first, second in ((1, right, wrong), (0, wrong, right)):
      example = task.example('train', 2 * index + 1 - goal)
      assert example.prompt == f'{goal}={plain.prompt}'
      assert example.id == 2 * index + 1 - goal
      found = task.recorded(example)
      assert [x.text for x in found] == [first.text, second.text]
      assert [x.label for x in found] == [1, 0]
      assert task.target(example) == first.text
      assert task.reward(example, right.text)['outcome'] == 1.0


def test_other_splits_ask_for_the_best():
  task = GoalPrompts(PAIRS, form='{prompt} to get {score:.1f}:')
  plain = PAIRS.example('validation', 2)
  example = task.example('validation', 2)
  assert task.num_prompts('validation') == PAIRS.num_prompts('validation')
  assert example.prompt == f'{plain.prompt} to get 1.0:'
  assert task.target(example) == PAIRS.target(plain)


def test_scored_files(tmp_path):
  """The goal goes into the user's turn; equal scores are left out."""

  def turn(role, text):
    return {'role': role, 'content': text}

  said = [[turn('assistant', text)] for text in ('x', 'y')]
  rows = [
    {'prompt': [turn('user', 'Q')], 'responses': said, 'scores': scores}
    for scores in ([7.0, 9.0], [5.0, 5.0])
  ]
  path = tmp_path / 'scored.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = GoalPrompts(
    PreferenceRows(path=str(path)), form='Score {score:g}. {prompt}'
  )
  assert task.num_prompts('train') == 2
  prompts = [task.example('train', i).messages[-1]['content'] for i in (0, 1)]
  assert prompts == ['Score 7. Q', 'Score 9. Q']
  assert task.target(task.example('train', 1)) == 'y'


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='GoalPrompts.form = .* has no {score}'):
    GoalPrompts(PAIRS, form='{prompt}')
  with pytest.raises(ValueError, match='needs pairs; .* have 1 responses'):
    GoalPrompts(Arithmetic())
