"""Reward functions in the forms of TRL and verl, as they are."""

import asyncio
import dataclasses
import functools
import json

import numpy as np
import pytest

from rl_jax.tasks import QuestionAnswer, RewardFunctions, base
from rl_jax.tasks.base import Example
from rl_jax.tasks.reward_forms import Form, JudgingFunction
from rl_jax.tasks.reward_functions import NotApplicableError
from rl_jax.verification.pool import VerifierPool
from rl_jax.worlds import Arithmetic

COLUMNS = {
  'prompt': 'p',
  'solution': '7',
  'task': 'math',
  'data_source': 'openai/gsm8k',
  'reward_model': {'style': 'rule', 'ground_truth': ['7', '8']},
  'extra_info': {'index': 3},
}
EXAMPLE = Example(prompt='p', answer='7', id=0, meta={base.COLUMNS: COLUMNS})
USER = {'role': 'user', 'content': 'p'}
CHAT = dataclasses.replace(EXAMPLE, messages=(USER,), prefill='<think>')


def said(function, example=EXAMPLE, response='7'):
  """(reward, what else was measured)."""
  found = JudgingFunction('file:f', function).judge(example, response)
  return found.reward, dict(found.more)


def accuracy(completions, solution, **kwargs):
  """TRL: named columns; other columns are there, too."""
  assert 'data_source' in kwargs and 'prompt' not in kwargs
  pairs = zip(completions, solution, strict=True)
  return [float(text == right) for text, right in pairs]


def spoken(prompts, completions, **kwargs):
  """TRL, of conversations: the assistant's turn is a list of one message."""
  (turns,), ((turn,),) = prompts, completions
  assert turns == [USER] and kwargs['task'] == ['math']
  assert turn['role'] == 'assistant'
  return [len(turn['content'])]


def only_keywords(**kwargs):
  return [sorted(kwargs).index('completions')]


def without_keywords(prompts, completions):
  return [len(prompts[0] + completions[0])]


def optional(completions, log_extra=None, solution=None, trainer_state=None):
  assert log_extra is None and trainer_state is None
  return np.asarray([float(solution == ['7'])])


async def later(prompts, completions, **kwargs):
  await asyncio.sleep(0)
  return [0.25]


class Callable:
  """TRL's examples have classes of this kind."""

  def __call__(self, completions, **kwargs):
    return [0.5]


class AsyncCallable:
  async def __call__(self, completions, **kwargs):
    return [0.75]


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
  """verl."""
  assert data_source == 'openai/gsm8k' and extra_info == {'index': 3}
  return float(solution_str in ground_truth)


def scored(data_source, solution_str, ground_truth, extra_info, **kwargs):
  assert not kwargs
  return {'score': 0.5, 'acc': True, 'pred': 'seven', 'length': 3}


def batch(data_sources, solution_strs, ground_truths, extra_infos):
  lists = (data_sources, solution_strs, ground_truths, extra_infos)
  assert [len(x) for x in lists] == [1] * 4
  return [{'score': len(solution_strs[0])}]


async def remote(data_source, solution_str, ground_truth, extra_info):
  return 1.5


async def ours(example, response):
  return {'reward': 2.0, 'length': len(response)}


@pytest.mark.parametrize(
  ('function', 'form', 'expected'),
  [
    (accuracy, Form.TRL, (1.0, {})),
    (only_keywords, Form.TRL, (0, {})),
    (without_keywords, Form.TRL, (2, {})),
    (optional, Form.TRL, (1.0, {})),
    (later, Form.TRL, (0.25, {})),
    (Callable(), Form.TRL, (0.5, {})),
    (AsyncCallable(), Form.TRL, (0.75, {})),
    (functools.partial(accuracy, more=1), Form.TRL, (1.0, {})),
    (compute_score, Form.VERL, (1.0, {})),
    (scored, Form.VERL, (0.5, {'outcome': True, 'length': 3})),
    (batch, Form.VERL_LISTS, (1, {})),
    (remote, Form.VERL, (1.5, {})),
    (ours, Form.OURS, (2.0, {'length': 1})),
  ],
)
def test_functions_are_taken_as_they_are(function, form, expected):
  assert JudgingFunction('file:f', function).form is form
  assert said(function) == expected


def test_conversations_and_prefills():
  """The prefill is of the assistant's turn; verl's text has it, too."""
  assert said(spoken, CHAT, '7') == (len('<think>7'), {})

  def text(solution_str, **kwargs):
    return len(solution_str)

  assert said(text, CHAT, '7') == (len('<think>7'), {})


def test_rows_without_what_verl_has():
  """The right answer of the task stands for the missing one."""
  plain = dataclasses.replace(EXAMPLE, meta={})

  def score(data_source, solution_str, ground_truth, extra_info):
    assert (data_source, extra_info) == ('', {})
    return float(solution_str == ground_truth)

  assert said(score, plain, '7') == (1.0, {})
  assert said(score, plain, '8') == (0.0, {})


def test_a_column_that_other_rows_have_is_null():
  example = dataclasses.replace(EXAMPLE, meta={base.COLUMNS: {'a': 1}})

  def reward(completions, solution):
    return [float(solution == [None])]

  assert said(reward, example) == (1.0, {})


def no_ids(completion_ids, **kwargs):
  return [0.0]


def no_state(completions, trainer_state):
  return [0.0]


def other_verl(data_source, solution_str, ground_truth, tokenizer):
  return 0.0


def one(example):
  return 0.0


def three(prompt, completion, answer):
  return 0.0


def stream(completions, **kwargs):
  yield 0.0


@pytest.mark.parametrize(
  ('function', 'message'),
  [
    (no_ids, 'file:f needs completion_ids, which is not known'),
    (no_state, 'file:f needs trainer_state, which is not known'),
    (other_verl, 'file:f needs tokenizer, which is not known'),
    (one, r'called as \(example, response\): too many positional'),
    (three, r'called as \(example, response\): missing a required argument'),
    (stream, 'file:f is a generator'),
  ],
)
def test_other_forms_are_refused_with_what_is_wanted(function, message):
  with pytest.raises(ValueError, match=message) as error:
    JudgingFunction('file:f', function)
  for part in ('(example, response)', '(prompts, completions, **columns)'):
    assert part in str(error.value)
  assert '(data_source, solution_str, ground_truth, extra_info)' in str(
    error.value
  )


@pytest.mark.parametrize(
  ('function', 'message'),
  [
    (lambda completions: 1.0, 'returned float: expected a list'),
    (lambda completions: '1', 'returned str: expected a list'),
    (lambda completions: [1.0, 2.0], 'returned 2 rewards for one response'),
    (lambda completions: ['1'], 'returned str as reward: expected a number'),
    (lambda completions: [{'score': 1}], 'returned dict as reward'),
    (lambda solution_str: None, 'returned NoneType as score'),
    (lambda solution_str: {'reward': 1}, "returned a dict without 'score'"),
    (lambda solution_strs: 1.0, 'returned float: expected a list'),
    (lambda example, response: [1.0], 'returned list as reward'),
  ],
)
def test_results_of_another_form_are_errors(function, message):
  with pytest.raises(ValueError, match=f'file:f {message}'):
    said(function)


ROWS = """
def maths(completions, task, **kwargs):
  return [1.0 if x == 'math' else None for x in task]

def code(completions, task, **kwargs):
  return [0.5 if x == 'code' else None for x in task]

def spelled(completions, solutoin, **kwargs):
  return [0.0]

def of_turns(completions, **kwargs):
  return [len(completions[0][0]['content'])]

def acc(data_source, solution_str, ground_truth, extra_info):
  return {'score': 0.1, 'acc': solution_str == ground_truth}
"""


@pytest.fixture
def file(user_modules, tmp_path):
  path = tmp_path / 'rewards.py'
  path.write_text(ROWS)
  return str(path)


@pytest.fixture
def rows(tmp_path):
  """Questions of three kinds."""
  path = tmp_path / 'rows.jsonl'
  kinds = ('math', 'code', 'other')
  path.write_text(
    ''.join(
      json.dumps({'question': kind, 'answer': '7', 'task': kind}) + '\n'
      for kind in kinds
    )
  )
  return QuestionAnswer(sources={'train': str(path)})


def test_none_is_no_reward(file, rows):
  """The function leaves the sum, as in TRL; without any the row leaves."""
  functions = {f'{file}:maths': 2.0, f'{file}:code': 1.0}
  task = RewardFunctions(rows, functions)
  examples = [task.example('train', i) for i in range(3)]
  first, second = (task.reward(example, '7') for example in examples[:2])
  assert base.combine(first, task.reward_weights) == 2.0
  assert base.combine(second, task.reward_weights) == 0.5
  assert first['code'] == second['maths'] == 0.0
  assert first['code/not_applicable'] == second['maths/not_applicable'] == 1.0
  assert 'maths/not_applicable' not in first
  with pytest.raises(NotApplicableError, match='no function applies'):
    task.reward(examples[2], '7')
  with VerifierPool(task, 1) as pool:
    found = pool.reward(examples, ['7'] * 3)
  assert [x.kind for x in found] == ['ok', 'ok', 'error']
  # The reward of the task counts: nothing is missing.
  task = RewardFunctions(rows, functions, task_weight=1.0)
  found = task.reward(examples[2], '7')
  assert base.combine(found, task.reward_weights) == 1.0


def test_the_outcome_of_verl_is_what_evaluation_counts(file, rows):
  task = RewardFunctions(rows, {f'{file}:acc': 1.0})
  example = task.example('train', 0)
  found = task.reward(example, '7')
  assert found['acc'] == 0.1 and found['outcome'] is True
  assert task.reward(example, 'it is 7')['outcome'] is False


def test_columns_are_looked_for_at_start(file, rows):
  """Those that a function cannot do without, in all rows."""
  task = RewardFunctions(rows, {f'{file}:spelled': 1.0})
  message = (
    r"spelled needs the columns \['solutoin'\], but rows have \['answer'"
  )
  with pytest.raises(ValueError, match=message):
    task.check_columns('train')
  RewardFunctions(rows, {f'{file}:maths': 1.0}).check_columns('train')
  task = RewardFunctions(Arithmetic(), {f'{file}:maths': 1.0})
  with pytest.raises(ValueError, match="'task'.*, but rows have none"):
    task.check_columns('train')
