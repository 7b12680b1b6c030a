"""TicTacToe against itself, by a decoder of 86,000 parameters.

A move, 'x(0,2)', is one token. The alphabet has the letters of Kuhn poker too:
a start that knows the moves of both games, and what training in one does to the
other, are in configs/pipelines/transfer.py.
Command: python -m experiments.train --config=configs/tic_tac_toe.py
  --method=spiral --set=method.aggregation.length=5.0 --workdir=runs/tic_tac_toe
Cost: about 3 minutes of a CPU core. Needs the extra 'games'.
Expected: not measured from random weights; from a clone of legal moves see
  configs/pipelines/transfer.py.
"""

import dataclasses

from configs import kuhn
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import OpenSpiel

PIECES = (
  *(*'012345678', 'p', 'b', '>', ', '),
  *(f'{player}({i},{j})' for player in 'xo' for i in '012' for j in '012'),
)


def get_config(method: Method) -> ExperimentConfig:
  """128 games an iteration; both players of a game are rows."""
  config = kuhn.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=OpenSpiel(name='tic_tac_toe', letters=False, alphabet=PIECES),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=20,
      turns=TurnConfig(
        max_turns=5, max_turn_tokens=1, max_observation_tokens=3
      ),
    ),
    evaluation=EvaluationConfig(every=0, num_prompts=50, num_samples=8),
  )
