"""Responses against the others of their group."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.data.completions import encode_recorded
from rl_jax.learning import pairwise_reward
from rl_jax.learning.final_values import final_values
from rl_jax.learning.learned_reward import Scorer
from rl_jax.learning.statistics import Forward
from rl_jax.models.reward_source import RewardModel
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.ops.rivals import BEATS, KINDS, rivals
from rl_jax.tasks import JoinedPairs, RulePairs
from rl_jax.worlds import Arithmetic

SEPARATOR, EOS = (4, 3), (1,)


def test_rows_are_those_of_the_task(toy):
  """The tokens of both orders are what a model of JoinedPairs is trained on."""
  pairs = RulePairs(Arithmetic(digits=2, signed=False))
  task = JoinedPairs(pairs, separator='+=')
  own = CharTokenizer(task.alphabet)
  example = task.example('train', 3)

  def encode(one):
    return encode_recorded(example, one, own)[0]

  expected = [encode(one) for one in task.recorded(example)]
  alone = [encode(one) for one in pairs.recorded(example)]
  assert [one.label for one in task.recorded(example)] == [1, 0]
  response = np.zeros((2, 5), np.int32)
  for row, ids in enumerate(alone):
    response[row, : len(ids)] = ids
  length = np.array([len(ids) for ids in alone], np.int32)
  traj = toy.trajectories(
    (response > 0).astype(np.float32),
    group_size=2,
    response_BT=response,
    length_B=length,
  )
  rows = pairwise_reward.joined(traj, tuple(own.encode('+=')), own.eos_ids)
  assert rows.group_size == 4 and rows.response_BT.shape == (4, 12)
  for row, ids in ((1, expected[0]), (2, expected[1])):
    found = np.asarray(rows.response_BT[row])
    assert found[: len(ids)].tolist() == ids and not found[len(ids) :].any()
    assert rows.mask_BT[row].sum() == rows.length_B[row] == len(ids)


def test_tasks_without_pairs_are_refused():
  with pytest.raises(ValueError, match='data of Arithmetic have 1'):
    JoinedPairs(Arithmetic())
  with pytest.raises(ValueError, match='separator is empty'):
    JoinedPairs(RulePairs(Arithmetic()), separator='')


def test_win_rates(tiny):
  """E1: means over the others of sigmoid(V(a, b) - V(b, a)), in parts, too."""
  traj, params = tiny.rollout(), tiny.params()
  G = traj.group_size
  rates = jax.jit(pairwise_reward.win_rates, static_argnums=(0, 3, 4))
  whole = Forward(model=tiny.CFG)
  found = np.asarray(rates(whole, params, traj, SEPARATOR, EOS))
  rows = pairwise_reward.joined(traj, SEPARATOR, EOS)
  value = np.asarray(
    jax.jit(final_values, static_argnums=0)(whole, params, rows)
  )
  value = value.reshape(-1, G, G)
  beats = 1 / (1 + np.exp(value.swapaxes(1, 2) - value))
  # Against itself a response has 0.5.
  expected = (beats.sum(axis=2) - 0.5) / (G - 1)
  np.testing.assert_allclose(found, expected.reshape(-1), atol=1e-5)
  np.testing.assert_allclose(found.reshape(-1, G).mean(1), 0.5, atol=1e-5)
  assert np.ptp(found) > 1e-3
  parts = Forward(model=tiny.CFG, microbatches=traj.num_prompts)
  again = rates(parts, params, traj, SEPARATOR, EOS)
  np.testing.assert_allclose(again, found, atol=1e-5)


@pytest.mark.parametrize('kind', KINDS)
def test_rivals_in_joined_groups(tiny, kind):
  """E1: the same probabilities, of fewer pairs; in parts of groups, too."""
  traj, params = tiny.rollout(num_prompts=2, group_size=4), tiny.params()
  rival_GG = rivals(kind, 4)
  one = Scorer(
    RewardModel(path='x', separator='-'),
    Forward(model=tiny.CFG),
    separator=SEPARATOR,
    eos_ids=EOS,
  )
  found = jax.jit(one, static_argnums=2)(params, traj, kind)
  every = jax.jit(one)(params, traj)[BEATS]
  asked_BG = np.tile(rival_GG & ~np.eye(4, dtype=bool), (2, 1))
  expected = np.where(asked_BG, every, 0.5)
  np.testing.assert_allclose(found[BEATS], expected, atol=1e-5)
  count_B = np.maximum(asked_BG.sum(1), 1)
  mean_B = 0.5 + ((expected - 0.5) * asked_BG).sum(1) / count_B
  np.testing.assert_allclose(found['learned'], mean_B, atol=1e-5)
  parts = Forward(model=tiny.CFG, microbatches=4, group_rows=2)
  again = dataclasses.replace(one, forward=parts)
  again = jax.jit(again, static_argnums=2)(params, traj, kind)
  np.testing.assert_allclose(again['learned'], mean_B, atol=1e-5)


def test_verdicts_without_a_weight_are_no_preferences(tiny):
  """A model that is only measured leaves WinRate the rewards."""
  one = Scorer(
    RewardModel(path='x', separator='-', weight=0.0),
    Forward(model=tiny.CFG),
    separator=SEPARATOR,
    eos_ids=EOS,
  )
  assert set(jax.jit(one)(tiny.params(), tiny.rollout())) == {'learned'}


def test_preferences_may_go_round_in_circles(toy, monkeypatch):
  """E1: V from a table; rock, paper, scissors against paper and scissors.

  Each side by itself is even; across the sides r has (0 + 1) / 2, p has
  (1/2 + 0) / 2, s has (1 + 1/2) / 2.
  """
  strength = np.array([[0, -9, 9], [9, 0, -9], [-9, 9, 0]])

  def value(forward, params, rows):
    first, second = rows.response_BT[:, 0], rows.response_BT[:, 2]
    return jnp.asarray(strength)[first, second] * 5.0

  monkeypatch.setattr(pairwise_reward, 'final_values', value)
  moves = np.array([[0], [1], [2], [1], [2], [1]], np.int32)
  traj = toy.trajectories(
    np.ones((6, 1)),
    group_size=6,
    response_BT=moves,
    length_B=np.ones(6, np.int32),
    valid_B=np.array([1, 1, 1, 1, 1, 0], np.float32),
  )
  rival_GG = rivals('across', 6)
  beats = pairwise_reward.preferences(None, None, traj, (3,), (), rival_GG)
  found = pairwise_reward.mean_wins(beats, traj, rival_GG)
  np.testing.assert_allclose(found[:3], [0.5, 0.25, 0.75], atol=1e-6)
