"""SmolLM2-135M-Instruct walks through the maze of an OpenEnv server.

  uvicorn envs.maze_env.server.app:app --port=8000
  python -m experiments.train --config=configs/smollm2_maze.py
    --method=grpo --workdir=runs/maze

The first command is of a clone of https://github.com/meta-pytorch/OpenEnv; in
that file `max_concurrent_envs` is to be the number of rows at least. An episode
has up to six moves; a turn that is not a move costs as much as one into a wall.
The same with moves that take their time:
--set=task.client=configs.smollm2_maze:slow_client.

Needs the extra `openenv`.
Cost and expected numbers: docs/performance.md.
"""

import asyncio
import dataclasses
import os

from configs import smollm2_guesses, smollm2_mawps
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import OpenEnv

ADDRESS = os.environ.get('MAZE_SERVER', 'http://localhost:8000')
PROMPT = """\
Walk from 0,0 to 7,7. Moves: 0 up, 1 down, 2 left, 3 right.
At 2,2 you can go 0 or 1. Move: 1
At 2,4 you can go 0, 2 or 3. Move: 3
"""


def client(slow: bool = False):
  """The package's own client; slow: moves take five seconds in the mean."""
  from openenv.core.generic_client import GenericEnvClient

  class MazeClient(GenericEnvClient):
    """Writes what the server sends as a line."""

    async def step(self, action, **kwargs):
      """A move."""
      if slow:
        await asyncio.sleep(smollm2_guesses.delay([self._at, action]))
      return await super().step(action, **kwargs)

    def _parse_result(self, payload):
      found = super()._parse_result(payload)
      seen = found.observation
      self._at = seen['current_position']
      moves = ' or '.join(map(str, seen['legal_actions']))
      place = ','.join(map(str, self._at))
      line = {'line': f'At {place} you can go {moves}. Move:'}
      return dataclasses.replace(found, observation=line)

  return MazeClient(base_url=ADDRESS)


def slow_client():
  """The same, with moves that take their time."""
  return client(slow=True)


def get_config(method: Method) -> ExperimentConfig:
  """4 prompts x 4 samples of up to six moves."""
  base = smollm2_mawps.get_config(method)
  return dataclasses.replace(
    base,
    iterations=6,
    task=OpenEnv(
      client='configs.smollm2_maze:client',
      action='action',
      observation='line',
      prompt=PROMPT,
      invalid_reward=-0.75,  # as of a move into a wall
    ),
    rollout=dataclasses.replace(
      base.rollout,
      num_prompts=4,
      group_size=4,
      show_stop=True,
      max_prompt_tokens=128,
      max_response_tokens=160,
      turns=TurnConfig(
        max_turns=6, max_turn_tokens=4, max_observation_tokens=40
      ),
    ),
    update=dataclasses.replace(
      base.update, minibatch_prompts=4, microbatch_prompts=4
    ),
    evaluation=dataclasses.replace(base.evaluation, every=0),
    verifier=dataclasses.replace(
      base.verifier,
      num_workers=None,
      timeout_seconds=3 * smollm2_guesses.MOST_SECONDS,
    ),
  )
