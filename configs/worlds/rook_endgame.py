"""World rook_endgame: king and rook mate a king that a script moves.

  python -m experiments.train --config=configs/worlds/rook_endgame.py
    --method=turn_ppo --set=model.value_head=True
    --set=model.path=runs/lmrl/chess_bc --workdir=runs/rook_endgame
(--config=configs/worlds/rook_endgame.py@recorded: a player whose moves are
random in half of the turns) It needs the extra 'chess'.
configs/pipelines/lmrl.py makes the start and compares methods.
Cost: about two minutes of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import wordle
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.worlds import RookEndgame

_TURNS, _MOVE, _POSITION = 6, 4, 7
VARIANTS = {
  'recorded': (
    'task=RecordedWalks(task=RookEndgame(num_train=2000), noise=0.5, turns=6, '
    'num_recorded=1, turn_ends=False)',
    'rollout.num_prompts=64',
    'rollout.recorded_prompts=64',
    'rollout.group_size=1',
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 games an iteration."""
  config = wordle.get_config(method)
  turns = TurnConfig(
    max_turns=_TURNS,
    max_turn_tokens=_MOVE,
    max_observation_tokens=_POSITION,
  )
  return dataclasses.replace(
    config,
    task=RookEndgame(),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=_POSITION,
      max_response_tokens=_TURNS * (_MOVE + _POSITION),
      turns=turns,
    ),
  )
