"""Influence in a run: other numbers stay, selectors are compared."""

import dataclasses
import types

import jax.numpy as jnp
import pytest

from configs.methods import adaptive_kl, grpo, hapo
from configs.worlds import bandit
from experiments.flags import configuration
from rl_jax.config import DiagnosticsConfig, EvaluationConfig
from rl_jax.learning.statistics import Forward
from rl_jax.measures import influence
from rl_jax.pieces.selection import BetaPosterior, Uniform
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.runs.scanned import program

pytestmark = pytest.mark.usefixtures('no_mesh_left')


def config(method, **diagnostics):
  """Two optimizer steps a rollout on the bandit."""
  whole = bandit.get_config(method)
  return dataclasses.replace(
    whole,
    iterations=3,
    rollout=dataclasses.replace(whole.rollout, num_prompts=8),
    update=dataclasses.replace(whole.update, minibatch_prompts=4),
    evaluation=EvaluationConfig(every=0),
    diagnostics=DiagnosticsConfig(**diagnostics),
  )


def test_selection():
  """0 for uniform draws; near 1 - 4 / 32 if four prompts are always drawn."""
  uniform = Uniform()
  assert influence.selection(uniform, uniform.init(32), 4) < 0.02
  chosen = BetaPosterior(candidate_ratio=8)
  state = chosen.init(32)
  assert influence.selection(chosen, state, 4) < 0.1
  hard_N = jnp.where(jnp.arange(32) < 4, 1000.0, 1.0)
  state = {**state, 'a': hard_N, 'b': jnp.where(hard_N > 1, hard_N, 1000.0)}
  assert 0.7 < influence.selection(chosen, state, 4) <= 1 - 4 / 32


def test_every_player_of_a_game_has_states_of_a_baseline():
  """They are as in the state of a run: tables by prompt have a row for each
  role.
  """
  games = configuration.build('kuhn', 'spiral')
  games = dataclasses.replace(
    games, diagnostics=DiagnosticsConfig(influence_every=1)
  )
  functions = types.SimpleNamespace(
    forward=Forward(model=None), groups_per_minibatch=1
  )
  baseline = hapo.get_method()
  probe = influence.Probe(
    games, functions, games.method.as_arrays(), baseline.as_arrays(), {}
  )
  own = games.method.init_state(1)
  (table,) = [
    x['shortest']
    for name, x in probe._states(
      types.SimpleNamespace(method_state=own)
    ).items()
    if 'shortest' in x
  ]
  assert (
    len(table)
    == games.task.num_prompts('train') * games.task.traits.players
    > 1
  )


def test_whole_runs_refuse():
  reason = program.refusal(config(grpo.get_method(), influence_every=2))
  assert 'diagnostics.influence_every' in reason


def test_baselines_are_checked(tmp_path):
  broken = dataclasses.replace(grpo.get_method(), losses=())
  with pytest.raises(ValueError, match='diagnostics.baseline: method.losses'):
    loop.Trainer(
      config(grpo.get_method(), influence_every=1, baseline=broken),
      str(tmp_path),
    )


@pytest.mark.slow
def test_runs_stay_as_they_are(tmp_path):
  """E0 in all other metrics; measured every second iteration, state and all."""
  method, rows = adaptive_kl.get_method(), {}
  for every in (0, 2):
    workdir = str(tmp_path / str(every))
    baseline = method if every else None
    changed = config(method, influence_every=every, baseline=baseline)
    loop.Trainer(changed, workdir).run()
    rows[every] = read_jsonl(f'{workdir}/metrics.jsonl')
  for i, (plain, measured) in enumerate(zip(rows[0], rows[2], strict=True)):
    own = {n: x for n, x in measured.items() if n.startswith('influence/')}
    assert bool(own) == (i % 2 == 0)
    if own:
      assert own['influence/cos'] == pytest.approx(1.0, rel=1e-6)
      assert own['influence/ratio'] == pytest.approx(1.0, rel=1e-6)

    def kept(row):
      return {
        n: x
        for n, x in row.items()
        if not n.startswith(('influence/', 'time/'))
      }

    assert kept(plain) == kept(measured)
