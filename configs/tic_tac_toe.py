"""TicTacToe against itself, by a decoder of 30,000 parameters.

A move is one token, as 'x(0,2)', and a player reads the squares that are taken,
in order. Tokens are also those of Kuhn poker, so that a policy can learn one
game after the other: configs/pipelines/spiral.py.
Command: python -m experiments.train --config=configs/tic_tac_toe.py
  --method=spiral --set=method.aggregation.length=5.0 --workdir=runs/tic_tac_toe
Needs the extra 'games'.
"""

import dataclasses

from configs import kuhn
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import OpenSpiel

MOVES = tuple(f'{p}({i},{j})' for p in 'xo' for i in '012' for j in '012')
PIECES = (*'012345678', *'pb>', ', ', *MOVES)


def get_config(method: Method) -> ExperimentConfig:
  """128 games an iteration; both players of a game are rows."""
  config = kuhn.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=OpenSpiel(name='tic_tac_toe', letters=False, alphabet=PIECES),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=5 * 5,
      turns=TurnConfig(
        max_turns=5, max_turn_tokens=1, max_observation_tokens=4
      ),
    ),
  )
