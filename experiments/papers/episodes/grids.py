"""Worlds and claims of grids of other packages: Taxi of Gymnasium.

Policies begin with runs/taxi_start, a clone of recorded walks, whose command is
in README.md. Environments answer on the host. Needs the extra 'games'.
"""

from experiments.papers.episodes.cases import Claim, World

_TAXI = ('turn_ppo', 'grpo', 'filtered_bc')
WORLDS = {
  'taxi': World(
    'taxi', _TAXI, {'model.path': 'runs/taxi_start', 'evaluation.every': 100}
  )
}
# Of the 64 initial states that are evaluated: the mean of their best returns,
# and that of 24 random actions.
BEST, RANDOM = 7.984, -94.2
_RETURN = 'held_out/reward'  # of drawn episodes
_SOURCE = 'M28'
CLAIMS = (
  *(
    Claim(_SOURCE, f'{name} {text}', ('taxi', name), least, _RETURN, 0)
    for name in ('turn_ppo', 'grpo')
    for text, least in (
      ('reaches 95% of the best return', 0.95 * BEST),
      ('goes 95% of the way from random', BEST - 0.05 * (BEST - RANDOM)),
    )
  ),
  Claim(
    _SOURCE,
    'PPO above filtered BC',
    ('taxi', 'turn_ppo'),
    ('taxi', 'filtered_bc'),
    _RETURN,
  ),
)
