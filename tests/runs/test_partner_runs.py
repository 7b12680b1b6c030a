"""Runs whose environments ask a frozen model."""

import dataclasses
import os
import pathlib
import signal

import jax
import pytest

from configs.methods import grpo
from configs.worlds import keydoor
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.partner_source import Partner
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.planning import memory_plan
from rl_jax.runs import assembly, fingerprints, loop
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime.platform import Platform

pytestmark = pytest.mark.usefixtures('no_mesh_left')


@pytest.fixture(scope='module', name='task')
def _task():
  """It asks the partner 'oracle' about every action."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(pathlib.Path(__file__).parents[1]))
    import misbehaving_environments

    yield misbehaving_environments.Asking()


@pytest.fixture(scope='module', name='oracle')
def _oracle(task, tmp_path_factory):
  """A model with its own weights, and another tokenizer than the policy."""
  path = str(tmp_path_factory.mktemp('oracle') / 'model')
  tokenizer = CharTokenizer(task.alphabet[::-1])
  model = dataclasses.replace(
    keydoor.get_config(grpo.get_method()).model.config,
    vocab_size=tokenizer.vocab_size,
    num_layers=1,
    width=16,
    mlp_size=16,
  )
  params = params_lib.init_params(model, jax.random.key(7))
  model_dir.save_model(path, model, params, tokenizer)
  return path


def make_config(task, path, iterations=3, workers=0, **limits):
  """2 x 4 episodes of 3 turns."""
  config = keydoor.get_config(grpo.get_method())
  small = dataclasses.replace(
    config.model.config, num_layers=1, width=16, mlp_size=16
  )
  limits = {'max_tokens': 2, 'answer_tokens': 3} | limits
  return dataclasses.replace(
    config,
    iterations=iterations,
    task=task,
    partners=(Partner(path=path, name='oracle', **limits),),
    model=dataclasses.replace(config.model, config=small),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=2,
      group_size=4,
      max_response_tokens=24,
      turns=TurnConfig(
        max_turns=3, max_turn_tokens=2, max_observation_tokens=5
      ),
    ),
    update=dataclasses.replace(config.update, minibatch_prompts=None),
    evaluation=dataclasses.replace(config.evaluation, every=2, num_prompts=2),
    verifier=dataclasses.replace(config.verifier, num_workers=workers),
  )


@pytest.mark.slow
def test_a_resumed_run_equals_a_whole_one(task, oracle, tmp_path, record):
  """E0, though a worker is killed while answers are on their way."""
  whole, parts = tmp_path / 'whole', tmp_path / 'parts'
  loop.Trainer(make_config(task, oracle), str(whole)).run()
  config = make_config(task, oracle, 2, workers=2)
  loop.Trainer(config, str(parts)).run()
  config = dataclasses.replace(config, iterations=3)
  trainer = loop.Trainer(config, str(parts))
  pool, kills = trainer.parts.runner._journal.pool, []
  submit = pool.submit

  def killed_before(request, order):
    if not kills and len(request.actions) == 3:
      kills.extend(pool.worker_pids())
      os.kill(kills[0], signal.SIGKILL)
    submit(request, order)

  pool.submit = killed_before
  trainer.run()
  (rows, lines), (known, others) = record(whole), record(parts)
  assert kills and lines == others
  for row, other in zip(rows, known, strict=True):
    for name in ('loss', 'reward/mean', 'episode/questions'):
      assert row.get(name) == other.get(name)
  assert rows[-1]['episode/questions'] > 0
  assert rows[-1]['rollout/reward_errors'] == 0
  assert rows[-1]['rollout/logp_gap_max'] < 1e-4
  assert {len(turn['asked']) for x in lines for turn in x['turns']} == {1}


def test_partners_are_asked_between_bursts(task, oracle, tmp_path, record):
  """E0 if a run stops: no answer depends on time."""

  def run(folder, iterations, **rollout):
    config = make_config(task, oracle, iterations)
    rollout = dataclasses.replace(config.rollout, **rollout)
    guards = dataclasses.replace(config.guards, max_logp_gap=None)
    config = dataclasses.replace(config, rollout=rollout, guards=guards)
    loop.Trainer(config, str(tmp_path / folder)).run()
    return record(tmp_path / folder)

  rows, lines = run('whole', 2)
  run('parts', 1)
  again, others = run('parts', 2)
  assert lines == others
  for row, other in zip(rows, again, strict=True):
    for name in ('loss', 'reward/mean', 'episode/questions'):
      assert row.get(name) == other.get(name)
  assert rows[-1]['episode/questions'] > 0
  assert rows[-1]['calls/partner/ran'] > 0
  run('ahead', 2, staleness=1)


def test_what_does_not_fit_is_named_before_anything_is_compiled(
  task, oracle, tmp_path, compiled
):
  """Names, directories and lengths."""
  before = compiled.copy()
  config = make_config(task, oracle)
  unnamed = dataclasses.replace(config, partners=())
  with pytest.raises(ValueError, match=r"Asking asks partners \['oracle'\]"):
    assembly.prepare(unnamed)
  mesh = assembly.prepare(config)
  tokenizer = CharTokenizer(task.alphabet)
  with jax.set_mesh(mesh):
    for path, limits, expected in (
      (str(tmp_path / 'none'), {}, "partner 'oracle': .*none"),
      (oracle, {'max_tokens': 9000}, r'max_tokens \+ answer_tokens = 9003'),
    ):
      with pytest.raises(ValueError, match=expected):
        wrong = make_config(task, path, **limits)
        assembly.make_runner(wrong, None, tokenizer, mesh)
  for name in ('generate', 'begin', 'sample'):
    assert compiled[name] == before[name]


def test_partners_are_planned_for_and_their_files_are_noted(task, oracle):
  """4 bytes a parameter, as of judges; hashes of what is read."""
  config = make_config(task, oracle)
  mesh = assembly.prepare(config)
  alone = dataclasses.replace(config, partners=())
  model = policy_lib.planned_model(config.model, config.task, Platform())
  own = policy_lib.saved_model(oracle)
  count = sum(x.size for x in jax.tree.leaves(params_lib.shapes(own, mesh)))
  plans = [memory_plan.estimate(x, model, mesh) for x in (config, alone)]
  assert plans[0].kept - plans[1].kept == 4 * count > 0
  noted = [name for name, _ in fingerprints._files(config)]
  assert any(name.startswith('partners.0.path') for name in noted)
