"""A guide begins or ends responses."""

import functools

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax import decoding
from rl_jax.pieces.logits.other_policy import OtherPolicy
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LogitContext
from rl_jax.records import metrics
from rl_jax.rollouts.wrappers.guide_roll_in import GuideRollIn
from rl_jax.runs.loop import Trainer
from rl_jax.types import FORCED, PAD, POLICY
from tests.rollouts.wrappers.test_dataset_reset import (
  KEY,
  SAMPLING,
  N,
  T,
  start,
)
from tests.rollouts.wrappers.test_rubric_scaffold import SMALL

SETS = (*SMALL, 'model.value_head=True', 'iterations=2')


class Writers:
  """Stands for the collector: a policy, and another one as guide."""

  key, num_prompts, next_serial = KEY, N, 0

  def __init__(self, policy, guide):
    self._policy, self._guide = policy, guide

  def run_rows(self, function, traj, *arrays):
    """Without a mesh."""
    return function(traj, *arrays)

  def write(self, traj, new_tokens, transforms=()):
    """Whole responses."""
    assert new_tokens == T
    return (self._guide if transforms else self._policy)(traj)


@functools.lru_cache
def writer(tiny, seed):
  """Jitted sampling of a tiny model."""
  jitted = jax.jit(
    functools.partial(
      decoding.generate, cfg=tiny.CFG, sampling=SAMPLING, max_new_tokens=T
    )
  )
  params = tiny.params(seed)
  return lambda traj: jitted(params, traj=traj, key=KEY)


def begun(tiny, seed=1, **fields):
  """(rows, whole rows of the policy, whole rows of the guide)."""
  policy, other = writer(tiny, 0), writer(tiny, seed)
  rows = GuideRollIn(**fields).begin(start(), Writers(policy, other))
  return rows, policy(start()), other(start())


def before(traj):
  """Places before the cuts, bool [B, T]."""
  return np.arange(T)[None] < np.asarray(traj.extras['prefix_B'])[:, None]


def test_schedules():
  """D2LOLS switches at tau, LOLS is drawn, others are fixed."""
  switched = GuideRollIn(schedule='switched', tau=2.0)
  assert [switched._begins(n) for n in range(4)] == [False, False, True, True]
  mixed = GuideRollIn(schedule='mixed', tau=0.8)
  share = np.mean([mixed._begins(n) for n in range(500)])
  assert share == pytest.approx(0.8, abs=0.05)
  assert GuideRollIn()._begins(0) and not GuideRollIn(guide='ends')._begins(9)
  assert all(GuideRollIn(schedule='mixed', tau=1.0)._begins(n) for n in (0, 7))


def test_a_share_above_one_is_refused():
  with pytest.raises(ValueError, match='tau = 20'):
    GuideRollIn(schedule='mixed', tau=20.0).check(CheckContext())


def test_the_other_policy_by_hand():
  """E0: its logits, and those of the policy where it is not there."""
  own, other = np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]])
  both = LogitContext(own, {'guide': other})
  np.testing.assert_array_equal(OtherPolicy()(both), other)
  np.testing.assert_array_equal(OtherPolicy()(LogitContext(own)), own)


def test_the_guide_begins(tiny):
  """E0: its first tokens are given, not trained, and what follows is open."""
  rows, _, guide = begun(tiny, beta=1.0)
  kept_BT = before(rows)
  assert kept_BT.any() and not rows.finished_B.any()
  expected = np.where(kept_BT, guide.response_BT, 0)
  np.testing.assert_array_equal(rows.response_BT, expected)
  kinds = np.where(kept_BT, FORCED, PAD)
  np.testing.assert_array_equal(rows.kind_BT, kinds)
  assert not rows.mask_BT.any() and not rows.logp_behaviour_BT.any()
  assert (np.asarray(rows.length_B) < guide.length_B).all()
  assert not rows.extras['finished_by_guide_B'].any()


def test_the_guide_ends(tiny):
  """E0: tokens before the cut are the policy's, and all are sampled ones."""
  rows, policy, _ = begun(tiny, beta=1.0, guide='ends')
  kept_BT = before(rows)
  assert kept_BT.any()
  pairs = [
    (rows.response_BT, policy.response_BT),
    (rows.logp_behaviour_BT, policy.logp_behaviour_BT),
  ]
  for found, own in pairs:
    np.testing.assert_array_equal(found[kept_BT], own[kept_BT])
  real_BT = np.arange(T)[None] < np.asarray(rows.length_B)[:, None]
  np.testing.assert_array_equal(rows.kind_BT == POLICY, real_BT)
  np.testing.assert_array_equal(rows.mask_BT, real_BT)
  assert rows.extras['finished_by_guide_B'].all()


def test_without_a_cut_it_is_sampling(tiny):
  """E0: beta 0, where the guide begins; where it ends, it writes all."""
  rows, _, _ = begun(tiny, beta=0.0)
  empty = start()
  np.testing.assert_array_equal(rows.response_BT, empty.response_BT)
  np.testing.assert_array_equal(rows.length_B, 0)
  rows, _, guide = begun(tiny, beta=0.0, guide='ends')
  np.testing.assert_array_equal(rows.response_BT, guide.response_BT)


def test_a_guide_that_is_the_policy_ends_as_it_would(tiny):
  """E0: draws belong to places, so the row is the policy's own."""
  rows, policy, _ = begun(tiny, seed=0, beta=1.0, guide='ends')
  np.testing.assert_array_equal(rows.response_BT, policy.response_BT)


def test_order_of_prompts_changes_nothing(tiny):
  """E0: rows of prompts that change places."""
  piece = GuideRollIn(beta=1.0)
  sampler = Writers(writer(tiny, 0), writer(tiny, 1))
  rows = piece.begin(start(), sampler)
  half = len(rows.length_B) // 2
  order = np.r_[half : 2 * half, 0:half]
  turned = start(prompts=((0, 5), (3, 4)))
  turned = turned.replace(row_id_B2=start().row_id_B2[order])
  found = piece.begin(turned, sampler)
  np.testing.assert_array_equal(found.response_BT, rows.response_BT[order])


def test_a_run_switches(tmp_path):
  """The guide ends the rows of the first rollout and begins the second's."""
  sets = (*SETS, 'method.rollout.tau=1.0')
  bonus = 'method.losses=EntropyBonus(coef=0.01)'  # as no answer will be right
  config = configuration.build('families', 'rlgf@d2lols', sets, (bonus,))
  Trainer(config, str(tmp_path)).run()
  rows = metrics.read_jsonl(str(tmp_path / metrics.METRICS))
  assert len(rows) == 2 and all(row['train/grad_norm'] > 0 for row in rows)
