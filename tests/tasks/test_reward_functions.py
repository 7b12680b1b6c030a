"""Functions of the user as rewards of any task."""

import math

import pytest

from rl_jax import serialization
from rl_jax.tasks import RewardFunctions, combine
from rl_jax.verification.pool import VerifierPool
from rl_jax.worlds import Bandit

REWARDS = """
import time

def short(example, response):
  return float(len(response) < 3)

def graded(example, response):
  right = response == example.answer
  return {'reward': 0.5 * right, 'outcome': right, 'length': len(response)}

def odd(example, response):
  if response == 'hang':
    time.sleep(300)
  known = {'none': None, 'text': '1', 'dict': {'length': 1.0}, 'nan': 1e400 / 2}
  return known.get(response, 1)

def one_argument(example):
  return 1.0

def stream(example, response):
  yield 1.0

def outcome(example, response):
  return 1.0

NUMBER = 3
"""


@pytest.fixture
def rewards(user_modules, tmp_path):
  """The path of a file of rewards."""
  path = tmp_path / 'rewards.py'
  path.write_text(REWARDS)
  return str(path)


def test_rewards_are_weighted_sums_of_functions_and_the_task(rewards):
  """2 * short + 1 * graded + 0.25 * outcome, by hand."""
  task = RewardFunctions(
    task=Bandit(),
    functions={f'{rewards}:short': 2.0, f'{rewards}:graded': 1.0},
    task_weight=0.25,
  )
  example = task.example('train', 0)
  found = task.reward(example, example.answer)
  assert found == {
    'outcome': True,
    'value': 1.0,
    'short': 1.0,
    'graded': 0.5,
    'graded/length': 1,
  }
  assert combine(found, task.reward_weights) == 2.0 + 0.5 + 0.25
  found = task.reward(example, 'wrong')
  assert combine(found, task.reward_weights) == 0.0
  assert found['outcome'] is False and found['graded/length'] == 5


def test_alone_it_replaces_the_reward_of_the_task(rewards):
  """It is measured nevertheless; everything else is the task's."""
  task = RewardFunctions(Bandit(num_contexts=3), {f'{rewards}:short': 1.0})
  example = task.example('train', 1)
  found = task.reward(example, 'zz')
  assert found['outcome'] == 0.0
  assert combine(found, task.reward_weights) == 1.0
  assert task.num_prompts('train') == 3 and task.alphabet == 'ABCabcdefgh'
  assert not task.supports('reward_device')


def test_it_is_recorded_by_file_and_read_when_the_file_is_named(
  rewards, user_modules
):
  task = RewardFunctions(Bandit(), {f'{rewards}:short': 1.0})
  text = serialization.to_json(task)
  assert '"rewards:short": 1.0' in text and rewards in text
  assert serialization.from_json(text) == task
  assert hash(serialization.from_json(text)) == hash(task)
  user_modules._files.clear()
  with pytest.raises(ValueError, match=f'so add --import={rewards}'):
    serialization.from_json(text)
  forged = (
    '{"class": "tasks.RewardFunctions", "task": {"class": "worlds.Bandit"'
  )
  forged += '}, "functions": {"class": "dict", "items": {"os:system": 1.0}}}'
  with pytest.raises(ValueError, match='add --import=os'):
    serialization.from_json(forged)


def test_a_function_itself_may_be_given(rewards, user_modules):
  """Recorded by its name; a lambda has none."""
  short = user_modules.load(rewards).short
  assert RewardFunctions(Bandit(), {short: 1.0}).functions == {
    'rewards:short': 1.0
  }
  with pytest.raises(ValueError, match='not defined at the top level'):
    RewardFunctions(Bandit(), {lambda example, response: 1.0: 1.0})


@pytest.mark.parametrize(
  ('functions', 'message'),
  [
    ((), 'functions is empty'),
    (('{}',), r'expected PATH.py:FUNCTION'),
    (('{}:shorts',), 'rewards.py has no function shorts, but '),
    (('{}:NUMBER',), 'is not a function'),
    (('{}:one_argument',), r'called as \(example, response\): too many pos'),
    (('{}:stream',), 'stream is a generator'),
    (('{}:outcome',), "two components are named 'outcome'"),
    (('/nowhere/x.py:f',), '/nowhere/x.py: no such file'),
  ],
)
def test_mistakes_are_errors_at_start(rewards, functions, message):
  functions = {text.format(rewards): 1.0 for text in functions}
  with pytest.raises((ValueError, FileNotFoundError), match=message):
    RewardFunctions(Bandit(), functions)


@pytest.mark.parametrize('workers', [0, 1])
def test_a_wrong_value_costs_its_sample_alone(rewards, workers):
  """In this process, and in a worker, which has the time limit."""
  task = RewardFunctions(Bandit(), {f'{rewards}:odd': 1.0})
  example = task.example('train', 0)
  responses = ['a', 'none', 'text', 'dict', 'nan', *['hang'] * workers, 'b']
  with VerifierPool(task, workers, timeout_seconds=1.0) as pool:
    found = pool.reward([example] * len(responses), responses)
  kinds = [outcome.kind for outcome in found]
  late = ['timeout'] * workers
  assert kinds == ['ok', 'error', 'error', 'error', 'invalid', *late, 'ok']
  assert found[0].components['odd'] == 1.0 and math.isinf(1e400)
  assert 'rewards:odd returned NoneType as reward: expected a number' in (
    found[1].detail
  )
  assert 'returned str as reward' in found[2].detail
  assert "returned a dict without 'reward': {'length': 1.0}" in found[3].detail
