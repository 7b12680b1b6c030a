"""The second round of ReMax."""

import jax
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.pieces.logits.transforms import TopK
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.wrappers.greedy_response import GreedyResponse
from rl_jax.runs import loop
from rl_jax.runtime import mesh

NAN = np.nan


class Sampler:
  """Gives greedy rows with these rewards and notes what was asked for."""

  def __init__(self, toy, reward, valid):
    self.toy, self.reward, self.valid, self.asked = toy, reward, valid, None

  def sample(self, examples, indices, transforms):
    self.asked = examples, indices, transforms
    greedy = self.toy.trajectories(
      np.ones((len(self.reward), 1)),
      group_size=2,
      reward_B=np.asarray(self.reward),
      valid_B=np.asarray(self.valid),
    )
    return greedy, 'round'

  def run(self, function, *arrays):
    """Without a mesh."""
    return function(*arrays)


class Done:
  """The round of the samples."""

  examples, indices = ('a', 'b', 'c'), (3, 1, 2)


def test_rewards_by_hand(toy):
  """Means of the verified greedy rows of a prompt: (1 + .5) / 2; the finite
  one; none, so that the third prompt weighs nothing."""
  traj = toy.trajectories(np.ones((6, 2)), group_size=2)
  sampler = Sampler(toy, [1, 0.5, NAN, 2, NAN, 7], [1, 1, 1, 1, 0, 0])
  found, rounds = GreedyResponse().extend(traj, Done, sampler)
  assert sampler.asked == (Done.examples, Done.indices, (TopK(k=1),))
  assert rounds == ['round'] and found.group_size == 2
  np.testing.assert_array_equal(
    found.extras['greedy_reward_B'], [0.75, 0.75, 2, 2, 0, 0]
  )
  for live_B in (found.valid_B, found.weight_B):
    np.testing.assert_array_equal(live_B, [1, 1, 1, 1, 0, 0])
  np.testing.assert_array_equal(found.mask_BT, traj.mask_BT)


@pytest.mark.slow
def test_the_likeliest_tokens_are_drawn(tiny):
  """E0: one token kept of the distribution is greedy decoding."""
  start = decoding.start_trajectories(
    np.array([[3, 4], [0, 5]]),
    np.array([[1, 1], [0, 1]]),
    np.arange(2),
    group_size=2,
    max_response_tokens=5,
  )
  found = []
  for fields in ({'greedy': True}, {'transforms': (TopK(k=1),)}):
    sampling = decoding.SamplingConfig(eos_ids=(1,), **fields)
    traj = decoding.generate(
      tiny.params(),
      traj=start,
      key=jax.random.key(5),
      cfg=tiny.CFG,
      sampling=sampling,
      max_new_tokens=5,
    )
    found.append(np.asarray(traj.response_BT))
  np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_a_run_of_the_bandit(toy, tmp_path, make_config):
  """One sample and one greedy response a prompt; only the former trains."""
  config = make_config(
    toy.get_method('remax'), iterations='3', rollout__group_size='1'
  )
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    loop.Trainer(config, str(tmp_path)).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert len(rows) == 3 and all(row['train/skipped'] == 0 for row in rows)
  assert all(row['rollout/logp_gap_max'] < 1e-4 for row in rows)
  assert all(row['rollout/rounds'] == 2 for row in rows)
  trained = config.rollout.num_prompts * config.rollout.max_response_tokens
  assert all(0 < row['batch/trained_tokens'] <= trained for row in rows)
