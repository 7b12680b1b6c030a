"""Reward components and their combination."""

import dataclasses

import jax.numpy as jnp
import pytest

from rl_jax import tasks
from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import base
from rl_jax.tasks.environments import EnvironmentTask


def test_combine_is_the_weighted_sum():
  """0.9 * 1 + 0.1 * 0.5 = 0.95; unweighted components do not count."""
  components = {'outcome': 1.0, 'format': 0.5, 'length': 100.0}
  weights = {'outcome': 0.9, 'format': 0.1}
  assert tasks.combine(components, weights) == pytest.approx(0.95)


def test_combine_works_on_arrays():
  outcome_B, length_B = jnp.asarray([1.0, 0.0]), jnp.asarray([10.0, 20.0])
  reward_B = tasks.combine(
    {'outcome': outcome_B, 'length': length_B}, {'outcome': 1, 'length': -0.01}
  )
  assert jnp.allclose(reward_B, jnp.asarray([0.9, -0.2]))


def test_an_unknown_component_is_named():
  with pytest.raises(ValueError, match="'style'.*'outcome'"):
    tasks.combine({'outcome': 1.0}, {'outcome': 1.0, 'style': 0.1})


@pytest.mark.parametrize(
  'task',
  [
    tasks.Arithmetic(digits=2, reward_weights={'outcome': 2.0}),
    tasks.Bandit(seed=3),
    tasks.Countdown(grammar='full', template=tasks.ChatTemplate(system='S')),
    tasks.QuestionAnswer(
      sources={'train': 'a.jsonl'},
      template=tasks.ChatTemplate(shots=(('1+1', '2'),), prefill='So '),
    ),
    tasks.ReasoningGym(generator='leg_counting', options={'max_animals': 3}),
  ],
  ids=lambda task: type(task).__name__,
)
def test_tasks_are_values(task):
  """Equal after a round trip through JSON, and hashable."""
  again = from_json(to_json(task))
  assert again == task
  assert hash(again) == hash(task)


@dataclasses.dataclass(frozen=True)
class Guess(EnvironmentTask):
  """Its episodes are misspelt."""

  def mkae(self, example):
    return None


@dataclasses.dataclass(frozen=True)
class Words:
  """Its reward is misspelt."""

  reward_weights = {'outcome': 1.0}

  def num_prompts(self, split):
    return 1

  def example(self, split, index):
    return base.Example('', '', 0)

  def rewrad(self, example, response):
    return {'outcome': 1.0}


@pytest.mark.parametrize(
  ('task', 'message'),
  [
    (Guess(), r"Guess has no method make\(example\), .*; it has 'mkae'"),
    (Words(), r"Words has no method reward\(example, .*; it has 'rewrad'"),
  ],
)
def test_a_task_that_judges_nothing_is_named(task, message):
  """Before workers and weights are loaded."""
  with pytest.raises(ValueError, match=message):
    base.check_task(task)


@pytest.mark.parametrize('name', ['reward', 'reward_device', 'make'])
def test_each_way_to_judge_makes_a_task(name):
  cls = type('Mine', (Words,), {name: lambda self, *arguments: {}})
  base.check_task(cls())


@pytest.mark.parametrize('weight', [10**400, -(10**400), float('inf'), 'x'])
def test_weights_that_are_not_finite_are_named(weight):
  task = Words()
  object.__setattr__(task, 'reward_weights', {'outcome': weight})
  object.__setattr__(task, 'reward', task.rewrad)
  with pytest.raises(ValueError, match='expected finite weights by name'):
    base.check_task(task)
