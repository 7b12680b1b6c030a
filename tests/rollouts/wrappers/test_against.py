"""Samples of the policy beside samples of an opponent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.batch import make_batch
from rl_jax.pieces.roles import LossContext
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.rounds import Draw
from rl_jax.rollouts.wrappers.against import join_opponent
from rl_jax.runs import assembly, loop
from rl_jax.runtime import mesh


@pytest.mark.parametrize(
  'weights, weight, valid',
  [
    ((1.0, 1.0, 1.0), [1, 1, 1, 1], [1, 1, 1, 1]),
    ((1.0, 0.0, 1.0), [1, 1, 0, 0], [1, 1, 1, 1]),
    ((0.0, 1.0, 0.0), [0, 0, 1, 1], [0, 0, 1, 1]),
  ],
)
def test_groups_of_both(toy, weights, weight, valid):
  """Own rows first; a failed row of either stays out."""
  own = toy.trajectories(np.ones((4, 1)), group_size=2)
  other = own.replace(valid_B=own.valid_B.at[3].set(0.0))
  traj = join_opponent(own, other, jnp.array(weights))
  assert traj.group_size == 4 and traj.num_prompts == 2
  np.testing.assert_array_equal(traj.extras['opponent_B'], [0, 0, 1, 1] * 2)
  np.testing.assert_array_equal(traj.weight_B[:4], weight)
  np.testing.assert_array_equal(traj.valid_B[:4], valid)
  assert traj.valid_B[7] == 0


def test_candidates_of_rso_are_of_the_frozen_start(toy, tmp_path, make_config):
  """E1: whatever the policy has become, the reference wrote all that is kept.

  Pairs are of the second halves of groups, which the reference has drawn.
  """
  config = make_config(
    toy.get_method('rso'), rollout__group_size='4', rollout__num_prompts='8'
  )
  own_mesh = mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])
  with jax.set_mesh(own_mesh):
    parts = assembly.assemble(config, str(tmp_path), own_mesh)
    moved = jax.tree.map(lambda x: x * 2.0, parts.state.params)
    params = {**parts.policies.frozen(), **moved}
    traj, *_ = parts.collector.collect(Draw(params, parts.method, 0, 0))
    # A start that knows nothing has no reward, and equal ones make no pair.
    reward_B = np.random.default_rng(0).normal(size=64).astype(np.float32)
    batch, *_ = make_batch(
      parts.method, traj.replace(reward_B=jnp.asarray(reward_B)), {}
    )
    stats = {'logp': traj.logp_behaviour_BT}
    metrics = parts.method.losses[0](LossContext(stats, batch)).metrics
  kept_B = np.asarray(batch.weight_B) > 0
  np.testing.assert_array_equal(kept_B.reshape(8, 8), [[0] * 4 + [1] * 4] * 8)
  drawn_BT = np.asarray(traj.logp_behaviour_BT)
  np.testing.assert_allclose(
    drawn_BT[kept_B], np.asarray(traj.logp_ref_BT)[kept_B], atol=1e-4
  )
  apart = np.abs(drawn_BT - np.asarray(traj.logp_ref_BT))[~kept_B].max()
  assert apart > 0.01  # the policy has moved
  edges = batch.edges
  live_NE = np.asarray(edges.weight_NE) > 0
  assert live_NE.any() and metrics['preference/edges'] > 0
  assert (np.asarray(edges.win_NE)[live_NE] >= 4).all()
  assert (np.asarray(edges.lose_NE)[live_NE] >= 4).all()


@pytest.mark.slow
@pytest.mark.parametrize(
  'name', ['xpo', 'nash_md', 'nash_ema', 'ipo_md', 'rso']
)
def test_runs_of_the_bandit(toy, tmp_path, name, make_config):
  """Opponents are sampled, and the update's log-probs are the sampler's."""
  config = make_config(
    toy.get_method(name), iterations='3', rollout__group_size='4'
  )
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    loop.Trainer(config, str(tmp_path)).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert len(rows) == 3 and all(row['train/skipped'] == 0 for row in rows)
  assert all(row['rollout/logp_gap_max'] < 1e-4 for row in rows)
  assert rows[-1]['rollout/rounds'] == 2
  # At first policy, reference and mixture are one: ratios of IPO-MD are 0.
  if name == 'ipo_md':
    assert rows[0]['preference/margin'] == pytest.approx(0.0, abs=1e-5)
