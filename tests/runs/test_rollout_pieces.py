"""Runs of methods that change their rollouts: resumed, in parts, on devices."""

import dataclasses
import os

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax import config as config_lib
from rl_jax.records import metrics
from rl_jax.runs.loop import Trainer

SMALL = [
  'rollout.num_prompts=4',
  'update.minibatch_prompts=2',
  'evaluation.every=0',
  'iterations=4',
]
CHAIN = [
  'task.num_train=64',
  'rollout.max_response_tokens=12',
  'model.config.num_layers=1',
  'model.config.width=16',
  'model.config.mlp_size=32',
]
# Rows enough for an untrained model to be right now and then.
BANDIT = ['rollout.num_prompts=64', 'update.minibatch_prompts=32']
RUNS = {
  'a2fm': ('modes', CHAIN),
  'direct_advantage@candidates': ('chain', [*CHAIN, 'rollout.group_size=4']),
  'direct_advantage@critic': (
    'chain',
    [*CHAIN, 'rollout.group_size=4', 'model.value_head=True'],
  ),
  'dr_po': ('chain', [*CHAIN, 'model.value_head=True']),
  'ghpo': ('chain', [*CHAIN, 'rollout.max_prompt_tokens=64']),
  'policy_rollout': ('chain', CHAIN),
  'reg_grpo@windowed': ('chain', [*CHAIN, 'rollout.max_prompt_tokens=64']),
  'mcts_dpo': (
    'bandit',
    [*BANDIT, 'rollout.group_size=4', 'method.rollout.step_tokens=1'],
  ),
  'rex_rag': (
    'lookup',
    [
      *('rollout.num_prompts=8', 'method.rollout.clone_rate=1.0'),
      *('method.rollout.keep_ratio=0.5', *CHAIN[2:]),
    ],
  ),
  'spo_tree': ('bandit', [*BANDIT, 'method.rollout.segment_tokens=1']),
  # A loss of one group, whose rows are twice as many as were asked for.
  'spin': ('arithmetic', ['rollout.group_size=2']),
  't_ppo': (
    'windows',
    [*CHAIN, 'rollout.window_tokens=5', 'model.value_head=True'],
  ),
  'xpo': ('bandit', ['rollout.group_size=2']),
  'xrpo': (
    'bandit',
    [*BANDIT, 'rollout.group_size=8', 'rollout.max_prompt_tokens=5'],
  ),
}
pytestmark = pytest.mark.slow


def rows(name, workdir, sets=(), iterations=(4,)):
  """Metrics of a run of so many iterations, in one or more sessions."""
  world, own = RUNS[name]
  # Where nothing is rewarded yet, the weights shall change all the same.
  adds = ['method.losses=EntropyBonus(coef=0.01)']
  config = configuration.build(world, name, [*SMALL, *own, *sets], adds)
  for count in iterations:
    Trainer(dataclasses.replace(config, iterations=count), str(workdir)).run()
  found = metrics.read_jsonl(os.path.join(workdir, 'metrics.jsonl'))
  return [
    {n: x for n, x in row.items() if not n.startswith('time/')} for row in found
  ]


@pytest.fixture(scope='module', params=RUNS)
def whole(request, tmp_path_factory):
  """(name, rows of an uninterrupted run)."""
  workdir = tmp_path_factory.mktemp(request.param)
  return request.param, rows(request.param, workdir)


def test_resumed_bit_for_bit(whole, tmp_path):
  """E0: four iterations in two sessions, metrics included."""
  name, expected = whole
  assert rows(name, tmp_path, iterations=(1, 4)) == expected


def test_microbatches_change_nothing(whole, tmp_path):
  """E1: the update in parts."""
  name, expected = whole
  found = rows(name, tmp_path, ['update.microbatch_prompts=1'])
  assert_close(found, expected)


@pytest.mark.parametrize('whole', ['spin', 'xpo'], indirect=True)
def test_microbatches_of_rows_change_nothing(whole, tmp_path):
  """E1: rows of a group in several parts."""
  name, expected = whole
  found = rows(name, tmp_path, ['update.microbatch_rows=1'])
  assert_close(found, expected)


@pytest.mark.devices
def test_two_devices_equal_one(whole, tmp_path):
  """E1: microbatches of several prompts are split, those of one are not."""
  name, expected = whole
  config = configuration.build(RUNS[name][0], name, [*SMALL, *RUNS[name][1]])
  assert config_lib.on_devices(config, jax.device_count()).mesh.data > 1
  found = rows(name, tmp_path, ['update.microbatch_prompts=1'])
  assert_close(found, expected)


def assert_close(found, expected):
  """Metrics of two runs that differ in rounding."""
  for one, other in zip(found, expected, strict=True):
    assert one.keys() == other.keys()
    for key, value in one.items():
      np.testing.assert_allclose(value, other[key], rtol=2e-3, atol=2e-4)
