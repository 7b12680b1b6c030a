"""A user's own environment, in a file outside of the repository."""

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop

pytestmark = pytest.mark.usefixtures('no_mesh_left')

FILE = """
import dataclasses, random
from configs import keydoor
from rl_jax.tasks.environments import EnvironmentTask, Reply

class Game:
  def reset(self, seed):
    self.number, self.left = random.Random(seed).randrange(4), 3
    return Reply('?')

  def step(self, action):
    self.left -= 1
    right = action == str(self.number)
    says = '<' if action < str(self.number) else '>'
    return Reply(says, {'outcome': float(right)}, done=right or not self.left)

@dataclasses.dataclass(frozen=True)
class Guess(EnvironmentTask):
  alphabet = '0123?<>'
  def make(self, example):
    return Game()

def get_config(method):
  return dataclasses.replace(keydoor.get_config(method), task=Guess())
"""


def test_a_file_of_the_user_trains(tmp_path):
  """With workers, which import the file, too."""
  (tmp_path / 'guess.py').write_text(FILE)
  config = configuration.build(
    str(tmp_path / 'guess.py'),
    'grpo',
    [
      *('iterations=1', 'evaluation.every=0', 'verifier.num_workers=1'),
      *('rollout.num_prompts=4', 'rollout.turns.max_turns=3'),
      *('update.minibatch_prompts=4', 'rollout.max_response_tokens=8'),
    ],
  )
  workdir = tmp_path / 'run'
  loop.Trainer(config, str(workdir)).run()
  row = read_jsonl(workdir / 'metrics.jsonl')[-1]
  assert np.isfinite(row['train/loss']) and row['rollout/reward_errors'] == 0
  turns = read_jsonl(workdir / 'rollouts.jsonl')[0]['turns']
  assert turns[0]['observation'] == '?'
