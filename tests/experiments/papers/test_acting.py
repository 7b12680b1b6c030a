"""Influence of the methods of the main world on the same rows."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.papers.worlds import (
  acting,
  influences,
  looped,
  sweep,
  trials,
  where,
)
from rl_jax.records.metrics import read_jsonl

pytestmark = pytest.mark.usefixtures('no_mesh_left')


def test_a_method_runs_as_in_its_trial():
  """One iteration, its own rate and changes, without evaluation."""
  setting = acting.setting_of(sweep.MAIN, 'dr_grpo')
  assert setting['method'] == 'dr_grpo' and setting['config'] == sweep.MAIN
  assert setting['iterations'] == 1 and setting['evaluation.every'] == 0
  trial = trials.STALE['dr_grpo']
  assert setting[trials.RATE] == trial.rate
  assert trial.changes.items() <= setting.items()


def test_methods_without_a_line_are_appended(tmp_path, monkeypatch):
  """In the order of the trials; the baseline has none; a second call adds
  nothing."""
  path = tmp_path / 'lines.jsonl'
  old = {'world': sweep.MAIN, 'method': 'gspo', 'rows': 'old'}
  path.write_text(json.dumps(old) + '\n')
  monkeypatch.setattr(acting, 'moved_rows', lambda world: world + 'moved')

  def line(world, name, given):
    return {
      'world': world,
      'method': name,
      'rows': given,
    }

  monkeypatch.setattr(acting, 'measured', line)

  def in_loop(world, name):
    return line(world, name, world + 'moved')

  monkeypatch.setattr(acting, 'measured_in_loop', in_loop)
  names = [
    (world, name)
    for world in (*sweep.COMPARED, *sweep.WORLDS)
    for name in sweep.methods_of(world)
    if name != sweep.BASELINE and (world, name) != (sweep.MAIN, 'gspo')
  ]
  names += [
    (world, name)
    for world, of in looped.WORLDS.items()
    for name in of.rates
    if name != of.baseline
  ]
  monkeypatch.setattr(acting, '_OUT', types.SimpleNamespace(value=str(path)))
  for _ in range(2):
    acting.main([])
  found = read_jsonl(path)
  assert found[0] == old
  assert [(row['world'], row['method']) for row in found[1:]] == names
  assert all(row['rows'] == row['world'] + 'moved' for row in found[1:])


@pytest.mark.slow
def test_the_baseline_acts_as_itself(monkeypatch):
  """Cosine and ratio 1 to itself; APO's are others, also without a piece.

  Random weights, and rewards of 1 and 0 in turn: random responses have none.
  """
  small = {
    **sweep.SHORT,
    'model.config.num_layers': 1,
    'rollout.group_size': 2,
    'rollout.num_prompts': acting.GROUPS,
  }
  main = sweep.COMPARED[sweep.MAIN]
  main = dataclasses.replace(main, start=small)
  monkeypatch.setitem(sweep.COMPARED, sweep.MAIN, main)
  monkeypatch.setattr(acting, 'ITERATIONS', (1, 2))
  given = acting.moved_rows(sweep.MAIN)
  assert [one.rows.num_prompts for one in given] == [acting.GROUPS] * 2
  assert given[0].before == {} and given[1].before.keys() == given[1].now.keys()
  key = jax.random.key(acting.SEED)

  def noise(x):
    return x * (1 + 0.05 * jax.random.normal(key, x.shape))

  def known(one):
    reward_B = jnp.arange(one.rows.reward_B.shape[0]) % 2.0
    rewards = {'outcome': reward_B}
    rows = one.rows.replace(reward_B=reward_B, rewards=rewards)
    return one._replace(rows=rows, now=jax.tree.map(noise, one.now))

  given = [known(one) for one in given]
  monkeypatch.setattr(where, 'baseline_of', lambda name: 'grpo')
  own, other = (acting.measured(sweep.MAIN, n, given) for n in ('grpo', 'apo'))
  np.testing.assert_allclose([own['cos'], own['ratio']], 1.0, atol=1e-4)
  assert own['tokens_stopped'] == own['rows_changed'] == 0.0
  assert other['cos'] < 0.999 and other['method'] == 'apo'
  assert own['pieces'] == {} and 'losses.1.DifficultyKL' in other['pieces']
  assert max(ratio for _, ratio in other['pieces'].values()) > 1.001
  assert own.keys() == other.keys()
  assert own.keys() == read_jsonl(influences.FILE)[0].keys()
