"""Worlds and claims of TextWorld's small rooms: the Practitioner's Guide.

Policies begin with runs/text_rooms_start, a clone of recorded walks, whose
command is in README.md. Games are played on the host, not within a program.
"""

import itertools

from experiments.papers.episodes.cases import WEIGHTS, Claim, World

_ROOMS = {
  'model.path': 'runs/text_rooms_start',
  'evaluation.every': 30,
}
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
)
