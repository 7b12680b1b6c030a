"""Reward components and their combination."""

from typing import Any

import jax.numpy as jnp
import pytest

from rl_jax import tasks, worlds
from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import base
from rl_jax.tasks.base import Task, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask


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
    worlds.Arithmetic(digits=2, reward_weights={'outcome': 2.0}),
    worlds.Bandit(seed=3),
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


class Words(Task):
  """A task with as few members as one may have."""

  reward_weights = {'outcome': 1.0}

  def num_prompts(self, split):
    return 1

  def example(self, split, index):
    return base.Example('', '', 0)

  def reward(self, example, response):
    return {'outcome': 1.0}


def define(*bases, **members):
  """A class with these members."""
  return type('Mine', bases, members)


@pytest.mark.parametrize(
  ('bases', 'members', 'message'),
  [
    ((EnvironmentTask,), {'mkae': len}, "no 'mkae'; did you mean 'make'"),
    ((Words,), {'rewrad': len}, "no 'rewrad'; did you mean 'reward'"),
    ((Words,), {'alphabt': 'ab'}, "did you mean 'alphabet'"),
    ((Words,), {'reward_weight': {}}, "did you mean 'reward_weights'"),
    (
      (Words,),
      {'__annotations__': {'reward_wieghts': dict}},
      "did you mean 'reward_weights'",
    ),
    ((Words,), {'chat': True}, r"'chat' is .* = TaskTraits\(chat=True\)"),
    ((Words,), {'need_workers': True}, r'TaskTraits\(needs_workers=True\)'),
    ((Words,), {'modes': property(len)}, r'TaskTraits\(modes=\.\.\.\)'),
    ((Words,), {'__annotations__': {'players': int}}, "'players' is read"),
    ((Words,), {'__annotations__': {'traits': Any}}, 'traits are not a field'),
    ((Words,), {'__annotations__': {'alphabet': str}}, 'give it a default'),
    (
      (Words,),
      {'hinted': lambda self, example, share: example},
      r'hinted\(self, example, share\) should take \(self, example\)',
    ),
    ((Environment,), {'clsoe': len}, "no 'clsoe'; did you mean 'close'"),
    ((Words,), {'logged': len}, "'logged' is called 'recorded' today"),
    ((Words,), {'num_logged': 2}, "'num_logged' is called 'num_recorded'"),
  ],
)
def test_misspelt_members_are_errors_at_definition(bases, members, message):
  """So an optional method is never left out because of its name."""
  with pytest.raises(TypeError, match=message):
    define(*bases, **members)


def test_tasks_may_have_members_of_their_own():
  """Other names, plurals, and fields that the traits are computed from."""
  cls = define(
    Words,
    examples=lambda self: (),
    table=lambda self: {},
    clusters=False,
    __annotations__={'clusters': bool, 'mode': str},
    traits=property(lambda self: TaskTraits(clusters=self.clusters)),
  )
  base.check_task(cls())
  assert cls().traits == TaskTraits() and cls().weights_of(None) == {
    'outcome': 1.0
  }


def test_what_every_task_has_is_abstract():
  for cls in (Task, EnvironmentTask, Environment):
    with pytest.raises(TypeError, match='abstract'):
      cls()


def test_a_task_of_the_former_form_is_shown_the_new_one():
  """Before workers and weights are loaded."""
  members = {name: vars(Words)[name] for name in ('num_prompts', 'example')}
  former = type('Former', (), {**members, 'reward': Words.reward})()
  for use in (
    base.check_task,
    tasks.RulePairs,
    lambda task: tasks.MixturePart('a', task),
    lambda task: tasks.EvaluationSet('a', task=task),
  ):
    with pytest.raises(
      ValueError, match=r'Former does not derive (.|\n)*class Mine\(Task\):'
    ):
      use(former)


def test_an_episode_of_the_former_form_is_shown_the_new_one():
  task = define(EnvironmentTask, make=lambda self, example: Words())()
  with pytest.raises(TypeError, match=r'(?s)not an Env.*class Words\(Environm'):
    task.start(task.example('train', 0))


def test_optional_methods_are_those_that_a_class_writes():
  hinted = define(Words, hinted=lambda self, example: example)
  without = define(hinted, hinted=None)
  assert [x().supports('hinted') for x in (Words, hinted, without)] == [
    *(False, True, False)
  ]
  assert define(EnvironmentTask, make=lambda self, example: None)().supports(
    'make'
  )
  with pytest.raises(NotImplementedError, match='Words has no method hinted'):
    Words().hinted(None)


def test_traits_of_several_tasks():
  """Any that needs workers, the slowest, and only if all are deterministic."""
  found = base.merged(
    [
      TaskTraits(needs_workers=True, reward_seconds=2.0, asks=('a',)),
      TaskTraits(reward_seconds=3.0, deterministic=False, modes={'a': 'b'}),
    ],
    TaskTraits(chat=True, role='tool'),
  )
  assert found == TaskTraits(
    chat=True,
    role='tool',
    needs_workers=True,
    reward_seconds=3.0,
    asks=('a',),
    deterministic=False,
  )


@pytest.mark.parametrize('weight', [10**400, -(10**400), float('inf'), 'x'])
def test_weights_that_are_not_finite_are_named(weight):
  task = Words()
  object.__setattr__(task, 'reward_weights', {'outcome': weight})
  with pytest.raises(ValueError, match='expected finite weights by name'):
    base.check_task(task)
