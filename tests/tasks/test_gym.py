"""Generators of reasoning-gym: splits, scores and clear errors."""

import sys

import pytest

from rl_jax.tasks import ReasoningGym
from rl_jax.tasks import gym as gym_lib
from rl_jax.tasks.base import SPLITS
from rl_jax.verification.pool import VerifierPool


def _task(**fields):
  pytest.importorskip('reasoning_gym', reason="needs the extra 'tasks'")
  common = dict(
    generator='leg_counting', num_train=6, num_validation=4, num_test=5
  )
  return ReasoningGym(**{**common, **fields})


def test_splits_are_ranges_of_one_data_set():
  """No item twice, and the train split does not move with its size."""
  task = _task()
  prompts = [
    task.example(split, i).prompt
    for split in SPLITS
    for i in range(task.num_prompts(split))
  ]
  assert len(set(prompts)) == 15
  assert prompts[:6] == [
    _task(num_test=9).example('train', i).prompt for i in range(6)
  ]
  other = _task(seed=100)
  assert other.example('train', 0).prompt not in prompts


def test_the_generators_own_score_is_used():
  """A right answer is 1; countdown gives partial scores below 1."""
  task = _task()
  example = task.example('test', 2)
  assert task.reward(example, task.target(example)) == {
    'outcome': 1.0,
    'format': 1.0,
    'score': 1.0,
  }
  assert task.reward(example, example.answer)['format'] == 0.0
  countdown = _task(generator='countdown', options={'min_numbers': 3})
  example = countdown.example('train', 0)
  wrong = countdown.reward(example, '<answer>1+1</answer>')
  assert wrong['outcome'] == 0.0 and 0.0 < wrong['score'] < 1.0


def test_workers_score_it():
  task = _task()
  examples = [task.example('train', i) for i in range(6)]
  responses = [task.target(example) for example in examples]
  responses[3] = '<answer>-1</answer>'
  with VerifierPool(task, 1, timeout_seconds=60.0) as pool:
    outcomes = pool.reward(examples, responses)
  assert [o.components['outcome'] for o in outcomes] == [1, 1, 1, 0, 1, 1]


def test_errors_say_what_to_do(monkeypatch):
  with pytest.raises(ValueError, match="unknown .* 'leg_count'.*leg_counting"):
    _task(generator='leg_count').prepare()
  with pytest.raises(ValueError, match='options'):
    _task(options={'legs': 1}).prepare()
  with pytest.raises(ValueError, match='ReasoningGym.num_train'):
    _task(num_train=0)
  gym_lib._create.cache_clear()
  monkeypatch.setitem(sys.modules, 'reasoning_gym', None)
  with pytest.raises(ImportError, match=r'rl_jax\[tasks\]'):
    ReasoningGym(generator='leg_counting').prepare()
