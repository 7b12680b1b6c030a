"""Votes are of answers: tasks that name them, however they are wrapped."""

import json
import pickle

import pytest

from rl_jax.tasks import (
  Countdown,
  EvaluationSet,
  Mixture,
  MixturePart,
  PythonFunction,
  QuestionAnswer,
  ReasoningGym,
  RewardFunctions,
  votes,
)
from rl_jax.worlds import Arithmetic, WordProblems


def half(example, response):
  """A reward of the user."""
  return 0.5


@pytest.fixture
def questions(tmp_path):
  """One question with the answer 7."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'q', 'answer': '7'}) + '\n')
  return QuestionAnswer(sources={'train': str(path)})


def clusters(task, responses, index=0):
  """The cluster ids of responses to a prompt of the split train."""
  example = task.example('train', index)
  return [task.reward(example, text).get(votes.CLUSTER) for text in responses]


def test_thoughts_do_not_count(questions):
  """Three ways to the same answer are three votes for it."""
  texts = ['so 8', '2 * 4 = 8', 'that is 8.0!', 'I think 7']
  assert clusters(questions, texts) == [None] * 4
  first, second, third, other = clusters(votes.counted(questions, ''), texts)
  assert first == second == third != other
  words = votes.counted(WordProblems(), '')
  one, two, none = clusters(words, ['3 + 4\nbecause', '10 - 3\n', 'seven'])
  assert one == two and none == -1.0


def test_wrapped_tasks_count_as_well(questions):
  wrapped = {
    'functions': RewardFunctions(task=questions, functions={half: 1.0}),
    'set': EvaluationSet(name='a', split='train', task=questions),
  }
  wrapped = {name: votes.counted(task, '') for name, task in wrapped.items()}
  inner = wrapped['set'].task
  for task in (wrapped['functions'], inner):
    one, two, other = clusters(task, ['so 8', 'x 8', 'so 7'])
    assert one == two != other
  assert EvaluationSet(name='a') == votes.counted(EvaluationSet(name='a'), '')


def test_parts_of_a_mixture_count_alike(questions):
  """In a part whose responses are answers the whole text is one."""
  parts = (
    MixturePart('words', questions),
    MixturePart('sums', Arithmetic()),
  )
  mixture = votes.counted(Mixture(parts), '')
  one, two, other = clusters(mixture, ['so 8', 'x 8', 'so 7'])
  assert one == two != other
  one, two, other = clusters(mixture, ['8', '8', '7'], index=1)
  assert one == two != other
  plain = Mixture(parts[1:])
  assert votes.counted(plain, '') is plain


def test_answers_in_tags_are_compared_as_text():
  """Right ones are one answer."""
  task = Countdown(grammar='full')
  right = task.target(task.example('train', 0))
  texts = [
    right,
    f'thus {right}',
    'a <answer>1</answer>',
    'b <answer>1</answer>',
  ]
  counted = votes.counted(task, '')
  first, second, third, fourth = clusters(counted, texts)
  assert first == second != third == fourth != -1.0
  assert clusters(counted, ['no tags']) == [-1.0]
  assert pickle.loads(pickle.dumps(counted)) == counted
  gym = ReasoningGym(generator='chain_sum')
  assert votes.counted(gym, '') == votes.Counted(gym, 'answer_tags')


def test_whole_responses_stay_as_they_are():
  for task in (Arithmetic(), Countdown(), object()):
    assert votes.counted(task, '') is task


def test_programs_are_refused_by_name(tmp_path):
  task = PythonFunction(path=str(tmp_path / 'none.jsonl'))
  with pytest.raises(ValueError, match='borda_power = 0.5: PythonFunction is'):
    votes.counted(task, 'evaluation.borda_power = 0.5')
