"""Labels say what differs, briefly; differences have no noise."""

import dataclasses

import pytest

from experiments.flags import configuration
from experiments.reports import labels as labels_lib
from rl_jax import serialization
from rl_jax.runs import directory


def build(method='grpo', *sets, adds=(), config='configs/worlds/bandit.py'):
  found = configuration.build(config, method, list(sets), list(adds))
  return serialization.from_json(serialization.to_json(found))


def test_the_seed_and_the_machine_do_not_make_another_configuration():
  """Runs on another mesh compute the same."""
  one = build()
  same = build('grpo', 'seed=3', 'mesh.data=8', 'guards.log_rollouts=0')
  assert labels_lib.key(one) == labels_lib.key(same)
  assert labels_lib.difference(one, same) == []
  other = build('grpo', 'iterations=3')
  assert labels_lib.key(one) != labels_lib.key(other)
  assert labels_lib.difference(one, other) == ['iterations: 60 -> 3']


def test_what_is_left_out_may_change_on_resume():
  """E1 of the loop: such a field changes no number."""
  for name in labels_lib.MACHINE:
    free = (f'{name}:', f'{name}.')
    assert any(text.startswith(directory.FREE) for text in free), name


@pytest.mark.parametrize(
  ('configs', 'expected'),
  [
    ([('grpo',), ('dapo',)], ['grpo', 'dapo']),
    # The value head belongs to the method.
    ([('grpo',), ('ppo', 'model.value_head=True')], ['grpo', 'ppo']),
    (
      [('grpo', f'optimizer.learning_rate={x}') for x in (1e-4, 3e-4)],
      ['learning_rate=0.0001', 'learning_rate=0.0003'],
    ),
    (
      [
        (method, f'optimizer.learning_rate={x}')
        for method in ('grpo', 'ppo_max@no_kl')
        for x in (1e-4, 3e-4)
      ],
      [
        'grpo learning_rate=0.0001',
        'grpo learning_rate=0.0003',
        'ppo_max@no_kl learning_rate=0.0001',
        'ppo_max@no_kl learning_rate=0.0003',
      ],
    ),
    (
      [('grpo', f'method.losses.KLPenalty.coef={x}') for x in (0.0, 0.1)],
      ['KLPenalty.coef=0', 'KLPenalty.coef=0.1'],
    ),
    (
      [
        ('dapo', 'rollout.num_prompts=4', 'evaluation.num_prompts=9'),
        ('dapo', 'rollout.num_prompts=8', 'evaluation.num_prompts=5'),
      ],
      [
        'rollout.num_prompts=4 evaluation.num_prompts=9',
        'rollout.num_prompts=8 evaluation.num_prompts=5',
      ],
    ),
  ],
)
def test_labels_are_what_differs(configs, expected):
  assert labels_lib.labels([build(*words) for words in configs]) == expected


def test_pieces_and_tasks_in_labels():
  """A piece that was added; a task of another class, without its fields."""
  more = build('dapo', adds=['method.losses=EntropyBonus(coef=0.01)'])
  assert labels_lib.labels([build('dapo'), build(), more]) == [
    'dapo',
    'grpo',
    'dapo +EntropyBonus',
  ]
  other = build(config='configs/worlds/bandit_described.py')
  other = dataclasses.replace(build(), task=other.task)
  assert labels_lib.labels([build(), other]) == [
    'task=Bandit',
    'task=Described',
  ]
  (line,) = labels_lib.difference(build(), other)
  assert line.startswith('task: Bandit(') and '-> Described(task=' in line


def test_fields_of_runs():
  """Names and values to filter by; an absent field is empty."""
  configs = [
    build('grpo', 'method.losses.KLPenalty.coef=0.1', 'iterations=3'),
    build('dapo', 'iterations=4'),
  ]
  assert labels_lib.fields(configs) == [
    {'method': 'grpo KLPenalty.coef=0.1', 'iterations': '3'},
    {'method': 'dapo', 'iterations': '4'},
  ]


def test_a_method_is_called_as_it_was_typed():
  """The nearest name of ours is not used; unknown names stay distinct."""
  own = build('grpo', adds=['method.weights=ClipCovDrop()'])
  assert labels_lib.labels([build(), own], [None, 'mine']) == ['grpo', 'mine']
  slow = dataclasses.replace(own, iterations=3)
  typed = ['dapo', 'mine +EntropyBonus()', 'mine +EntropyBonus()']
  assert labels_lib.labels([build('dapo'), own, slow], typed) == [
    'dapo iterations=60',
    'mine +EntropyBonus() iterations=60',
    'mine +EntropyBonus() iterations=3',
  ]
  assert labels_lib.labels([own, slow], typed[1:]) == [
    'iterations=60',
    'iterations=3',
  ]
