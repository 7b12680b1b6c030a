"""Worlds and claims of TextWorld's small rooms: the Practitioner's Guide.

Policies begin with runs/text_rooms_start, a clone of recorded walks, whose
command is in README.md. Games are played on the host, not within a program.
`rooms_credited` came later, from the clone of a later version,
runs/text_rooms_again: there PPO also has the rewards of turns at their ends.
`rooms_many` trains on as many games as the clone has read, at a lower rate.
"""

import itertools

from experiments.papers.episodes.cases import WEIGHTS, Claim, World

_ROOMS = {
  'model.path': 'runs/text_rooms_start',
  'evaluation.every': 30,
}
_MANY = {'model.path': 'runs/text_rooms_again', 'task.num_train': 192}
_METHODS = ('grpo', 'rloo', 'ppo')
_REWARDS = {'rooms_dense': 'progress', 'rooms_sparse': 'outcome'}
WORLDS = {
  **{
    world: World(
      'text_rooms', _METHODS, {**_ROOMS, WEIGHTS: f"{{'{reward}': 1.0}}"}
    )
    for world, reward in _REWARDS.items()
  },
  'rooms_start': World(
    'text_rooms',
    ('reinforce',),
    {
      **_ROOMS,
      'optimizer.learning_rate': 0.0,
      'iterations': 1,
      'evaluation.every': 1,
    },
  ),
  'rooms_credited': World(
    'text_rooms',
    (*_METHODS, 'ppo@turn_rewards'),
    {
      **_ROOMS,
      'model.path': 'runs/text_rooms_again',
      WEIGHTS: "{'progress': 1.0}",
    },
  ),
  'rooms_many': World(
    'text_rooms',
    ('grpo', 'ppo@turn_rewards'),
    {
      **_MANY,
      WEIGHTS: "{'progress': 1.0}",
      'optimizer.learning_rate': 3e-4,
      'iterations': 60,
      'evaluation.every': 60,
    },
  ),
  'rooms_many_start': World(
    'text_rooms',
    ('reinforce',),
    {
      **_MANY,
      'optimizer.learning_rate': 0.0,
      'iterations': 1,
      'evaluation.every': 1,
    },
  ),
}
# Of all training episodes; of episodes in other games, after training.
_TRAINED, _HELD_OUT = 'mean/outcome', 'held_out/outcome'
_START = ('rooms_start', 'reinforce')
CLAIMS = (
  *(
    Claim('M29', f'PPO above {name.upper()}', (w, 'ppo'), (w, name), metric)
    for metric, w, name in itertools.product(
      (_TRAINED, _HELD_OUT), _REWARDS, ('rloo', 'grpo')
    )
  ),
  *(
    Claim(
      'M29',
      'dense rewards help',
      ('rooms_dense', name),
      ('rooms_sparse', name),
      metric,
    )
    for metric, name in itertools.product((_TRAINED, _HELD_OUT), _METHODS)
  ),
  *(
    Claim(
      'M29',
      f'dense rewards help PPO more than {name.upper()}',
      ('rooms_dense', 'ppo'),
      ('rooms_sparse', 'ppo'),
      metric,
      base=name,
    )
    for metric, name in itertools.product(
      (_TRAINED, _HELD_OUT), ('rloo', 'grpo')
    )
  ),
  *(
    Claim('M29', 'above its SFT start', (world, name), _START, metric)
    for metric, world, name in itertools.product(
      (_HELD_OUT, 'greedy/outcome'), _REWARDS, _METHODS
    )
  ),
  *(
    Claim(
      'M29',
      f'with rewards of turns {text}',
      ('rooms_credited', 'ppo@turn_rewards'),
      ('rooms_credited', other),
      metric,
    )
    for metric, (text, other) in itertools.product(
      (_TRAINED, _HELD_OUT),
      (
        ('PPO above RLOO', 'rloo'),
        ('PPO above GRPO', 'grpo'),
        ('PPO above PPO with their sum at the end', 'ppo'),
      ),
    )
  ),
  *(
    Claim(
      'M29',
      'with 192 games above its SFT start',
      ('rooms_many', name),
      ('rooms_many_start', 'reinforce'),
      metric,
    )
    for metric, name in itertools.product(
      (_HELD_OUT, 'greedy/outcome'), ('grpo', 'ppo@turn_rewards')
    )
  ),
)
