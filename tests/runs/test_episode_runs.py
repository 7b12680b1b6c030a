"""Training on episodes: exact resume, programs, kills of all processes."""

import dataclasses
import importlib.util
import json
import os
import pathlib
import signal
import sys

import jax
import numpy as np
import pytest

from configs.methods import grpo, spiral, turn_ppo
from configs.worlds import keydoor
import rl_jax
from rl_jax.episodes import turns
from rl_jax.episodes.closings import FILE
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.judge_source import Judge
from rl_jax.models.reward_source import RewardModel
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.policies import CopyEvery, Frozen
from rl_jax.pieces.selection import AccuracyBand
from rl_jax.rollouts.wrappers import Opponent
from rl_jax.runs import guards, loop
from rl_jax.runs.slot_collector import SlotCollector
from rl_jax.runtime import profiling
from rl_jax.tasks import MemoryWindow
from rl_jax.verification.journal import FOLDER

pytestmark = pytest.mark.usefixtures('no_mesh_left')

PATH = pathlib.Path(__file__).parents[1] / 'tools' / 'kill_resume.py'
TURNS = TurnConfig(max_turns=4, max_turn_tokens=2, max_observation_tokens=4)


def make_config(method, iterations, workers=1, **model):
  """KeyDoor with a smaller model, 2 x 4 episodes of 4 turns."""
  config = keydoor.get_config(method)
  small = dataclasses.replace(
    config.model.config, num_layers=1, width=16, mlp_size=16
  )
  return dataclasses.replace(
    config,
    iterations=iterations,
    model=dataclasses.replace(config.model, config=small, **model),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=2,
      group_size=4,
      max_response_tokens=22,
      turns=TURNS,
    ),
    update=dataclasses.replace(config.update, minibatch_prompts=None),
    evaluation=dataclasses.replace(config.evaluation, every=2, num_prompts=2),
    verifier=dataclasses.replace(config.verifier, num_workers=workers),
  )


def train(method, workdir, iterations, **options):
  trainer = loop.Trainer(
    make_config(method, iterations, **options), str(workdir)
  )
  trainer.run()
  return trainer


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory, compiled):
  """Its directory, and how often it compiled each function."""
  workdir = tmp_path_factory.mktemp('whole')
  before = compiled.copy()
  train(grpo.get_method(), workdir, 3)
  return workdir, compiled - before


def test_a_run_compiles_its_programs_once(whole, record):
  """Turns are logged; sampler and trainer agree."""
  workdir, programs = whole
  rows, lines = record(workdir)
  assert rows[-1]['rollout/logp_gap_max'] < 1e-4
  assert 1 <= rows[-1]['episode/turns'] <= TURNS.max_turns
  assert 'evaluation/pass_at_1' in rows[2]
  assert all(len(line['turns']) >= 1 for line in lines)
  # One of training and one of evaluation, which is greedy.
  assert programs['begin'] == programs['feed'] == programs['sample'] == 2
  assert 0 < rows[-1]['device/slots_share'] <= 1
  assert rows[-1]['calls/step/ran'] > 0


def test_what_is_logged_is_what_environments_say(whole, record):
  """E0: each line, whose actions are given to a new environment."""
  task, several = keydoor.get_config(grpo.get_method()).task, 0
  _, lines = record(whole[0])
  for line in lines:
    episode = task.make(task.example('train', line['prompt_id']))
    reply = episode.reset(line['seed'])
    for turn in line['turns']:
      assert turn['observation'] == reply.observation and not reply.done
      reply = episode.step(turn['action'])
      assert turn['rewards'] == reply.rewards
    assert line['last_observation'] in ('', reply.observation)
    assert (line['end'] == 'done') == reply.done
    several += len(line['turns']) > 2
  assert several > 3


def test_a_resumed_run_equals_a_whole_one(whole, tmp_path, record):
  """E0, though its workers were killed before; also of another number."""
  train(grpo.get_method(), tmp_path, 2, workers=2)
  train(grpo.get_method(), tmp_path, 3, workers=2)
  (rows, lines), (known, expected) = record(tmp_path), record(whole[0])
  assert lines == expected and timeless(rows) == timeless(known)


def test_workers_that_die_change_nothing(whole, tmp_path, record):
  """E0 but for the count of repeated calls: all workers are killed again and
  again while they make no call."""
  config = make_config(grpo.get_method(), 3)
  trainer = loop.Trainer(config, str(tmp_path))
  journal, kills = trainer.parts.runner._journal, []
  calls = journal._calls._calls
  submit = calls.submit

  def killed_before(request):
    if not calls._open:
      for pid in journal.pool.worker_pids():
        os.kill(pid, signal.SIGKILL)
        kills.append(pid)
    submit(request)

  calls.submit = killed_before
  trainer.run()
  assert len(kills) > 6
  (rows, lines), (known, expected) = record(tmp_path), record(whole[0])
  assert lines == expected and timeless(rows) == timeless(known)
  assert sum(row.get('calls/retries', 0.0) for row in rows) > 0


@pytest.mark.slow
def test_a_run_of_which_no_episode_begins_ends(tmp_path, monkeypatch, record):
  """In the third iteration, with the reason; those at start do begin."""
  monkeypatch.syspath_prepend(PATH.parents[1])
  import misbehaving_environments

  config = make_config(grpo.get_method(), 9)
  config = dataclasses.replace(
    config,
    task=misbehaving_environments.FewBegin(),
    evaluation=dataclasses.replace(config.evaluation, every=0),
  )
  with pytest.raises(guards.StopRunError, match='3 iterations.*a bug'):
    loop.Trainer(config, str(tmp_path)).run()
  rows, _ = record(tmp_path)
  assert [row['episode/failed_resets'] for row in rows] == [8] * len(rows)
  assert [row['rollout/reward_errors'] for row in rows] == [8] * len(rows)


@pytest.mark.slow
def test_a_game_against_a_copy_resumes(tmp_path, monkeypatch, record):
  """E0: the copy and the baselines of roles are in the checkpoint."""
  monkeypatch.syspath_prepend(PATH.parents[1])
  import misbehaving_environments

  method = dataclasses.replace(
    spiral.get_method(),
    rollout=Opponent(rule=CopyEvery(iterations=2)),
  )

  def run(folder, iterations):
    config = make_config(method, iterations)
    config = dataclasses.replace(
      config, task=misbehaving_environments.RallyTask()
    )
    loop.Trainer(config, str(tmp_path / folder)).run()
    return record(tmp_path / folder)

  run('parts', 3)
  rows, lines = run('parts', 4)
  known, others = run('whole', 4)
  assert lines == others and timeless(rows) == timeless(known)
  assert rows[-1]['train/skipped'] == 0
  assert {line['role'] for line in lines} == {0, 1}
  # Two evaluated games have two players each.
  assert rows[-1]['evaluation/n'] == 4


def _noted(evaluator, played):
  """Its method that plays, which puts the weights into `played`."""
  play = evaluator._collect

  def noted(params, *args):
    played.append(params)
    return play(params, *args)

  return noted


@pytest.mark.slow
def test_evaluations_are_games_against_the_copy(tmp_path, monkeypatch):
  """E0: the weights of the run's opponent, not those of the policy."""
  monkeypatch.syspath_prepend(PATH.parents[1])
  import misbehaving_environments

  method = dataclasses.replace(
    spiral.get_method(), rollout=Opponent(rule=Frozen())
  )
  config = dataclasses.replace(
    make_config(method, 2), task=misbehaving_environments.RallyTask()
  )
  trainer = loop.Trainer(config, str(tmp_path))
  evaluator, played = trainer.parts.evaluator, []
  monkeypatch.setattr(evaluator, '_collect', _noted(evaluator, played))
  trainer.run()
  params = played[-1]  # after the last iteration
  jax.tree.map(
    np.testing.assert_array_equal,
    params['policies']['opponent']['model'],
    trainer.parts.policies.trees['opponent']['model'],
  )
  moved = jax.tree.map(
    lambda x, y: (x != y).any(),
    params['policies']['opponent']['model'],
    params['model'],
  )
  assert any(jax.tree.leaves(moved))


@pytest.mark.slow
def test_contexts_that_are_rewritten_train_and_resume(tmp_path, record):
  """E0: as a whole run; samplers and trainers agree on what is drawn."""
  method = grpo.get_method()
  config = make_config(method, 2, workers=0)
  rollout = dataclasses.replace(
    config.rollout,
    max_response_tokens=60,
  )
  model = dataclasses.replace(config.model.config, max_positions=80)
  config = dataclasses.replace(
    config,
    task=MemoryWindow(config.task, turns=1),
    rollout=rollout,
    model=dataclasses.replace(config.model, config=model),
  )
  longer = dataclasses.replace(config, iterations=4)
  loop.Trainer(longer, str(tmp_path / 'whole')).run()
  loop.Trainer(config, str(tmp_path / 'two')).run()
  loop.Trainer(longer, str(tmp_path / 'two')).run()
  rows, rollouts = record(tmp_path / 'whole')
  known, others = record(tmp_path / 'two')
  assert rollouts == others and timeless(rows) == timeless(known)
  assert max(row.get('rollout/logp_gap', 0.0) for row in rows) < 1e-4
  assert any(turn.get('forgets') for x in rollouts for turn in x['turns'])


@pytest.mark.slow
def test_turn_ppo_trains(tmp_path, record):
  """Values, rewards by turn and several minibatches on episodes."""
  trainer = train(turn_ppo.get_method(), tmp_path, 1, value_head=True)
  rows, _ = record(tmp_path)
  assert np.isfinite(rows[-1]['train/loss']) and rows[-1]['train/skipped'] == 0
  assert trainer.counters.optimizer_steps == 1


@pytest.mark.slow
def test_a_killed_run_equals_a_whole_one(tmp_path):
  """E0: kill -9 of the trainer at any moment; its workers go with it."""
  spec = importlib.util.spec_from_file_location('kill_resume', PATH)
  kill_resume = importlib.util.module_from_spec(spec)
  sys.modules['kill_resume'] = kill_resume
  spec.loader.exec_module(kill_resume)
  command = (
    '{python} -m experiments.train --config=configs/worlds/keydoor.py '
    '--method=grpo '
    '--set=iterations=25 --set=checkpoint.every=1 --set=verifier.num_workers=2 '
    '--set=rollout.num_prompts=4 --set=rollout.turns.max_turns=8 '
    '--set=evaluation.every=0 --workdir={workdir}'
  )
  whole, killed = tmp_path / 'whole', tmp_path / 'killed'
  kill_resume.finish(kill_resume.start(command, whole), whole)
  kills = kill_resume.kill_until(command, killed, seconds=60, interval=1.0)
  found = kill_resume.differences(
    kill_resume.read_record(whole), kill_resume.read_record(killed)
  )
  assert found == [] and kills >= 2


@pytest.mark.slow
def test_judges_read_episodes(tmp_path, record):
  """E0: 4 iterations are 2 and 2; the score counts at the end of a row."""
  judge = Judge(
    template='{prompt}{response}',
    labels=('u', 'd'),
    turn='{action}{answer}',
    weight=0.5,
    max_tokens=64,
  )

  def run(folder, iterations):
    config = make_config(turn_ppo.get_method(), iterations, value_head=True)
    config = dataclasses.replace(config, judges=(judge,))
    trainer = loop.Trainer(config, str(tmp_path / folder))
    trainer.run()
    return trainer

  whole = run('whole', 4)
  run('parts', 2)
  parts = run('parts', 4)
  jax.tree.map(np.testing.assert_array_equal, whole.state, parts.state)
  rows, _ = record(tmp_path / 'whole')
  assert timeless(rows) == timeless(record(tmp_path / 'parts')[0])
  trained = [row for row in rows if 'reward/judge' in row]
  assert len(trained) == 4
  for row in trained:
    assert 0 < row['reward/judge'] < 1
    task = 0.5 * row['reward/outcome'] + 0.5 * row['reward/progress']
    total = task + 0.5 * row['reward/judge']
    np.testing.assert_allclose(row['reward/mean'], total, rtol=1e-5)
  assert any('evaluation/reward/judge' in row for row in rows)


def ungated(iterations, **more):
  """The run of make_config without a guard of lags."""
  return changed(make_config(grpo.get_method(), iterations), **more)


def changed(config, **more):
  """The configuration with these fields of its rollout; no guard of lags."""
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(config.rollout, **more),
    guards=dataclasses.replace(config.guards, max_logp_gap=None),
  )


BAND = 0.9  # of mean rewards; a filter drops groups above it
TIMED = ('device/', 'cache/', 'calls/', 'episodes/', 'rollout/waited_for')


def timeless(rows):
  """Rows of metrics without what depends on time."""
  return [
    {k: x for k, x in row.items() if not k.startswith(TIMED)} for row in rows
  ]


def check_same_episodes(found, expected):
  """E2: actions, observations and rewards of all iterations; metrics close."""
  (rows, lines), (known, others) = found, expected
  for line, other in zip(lines, others, strict=True):
    for name in ('turns', 'response', 'reward', 'prompt_id'):
      assert line[name] == other[name]
  for row, other in zip(rows, timeless(known), strict=True):
    assert other.keys() <= row.keys()
    for name, value in other.items():
      assert row[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize('episodes', ['lockstep', 'slots'])
def test_a_run_of_an_earlier_version_continues(
  whole, tmp_path, record, episodes
):
  """E0 here, as its first iterations are of today; a run whose rows waited for
  each other continues only if the change is named."""
  train(grpo.get_method(), tmp_path, 2)
  path = tmp_path / 'experiment.json'
  recorded = json.loads(path.read_text())
  recorded['rollout']['episodes'] = episodes
  path.write_text(json.dumps(recorded))
  config, allowed = make_config(grpo.get_method(), 3), ()
  if episodes == 'lockstep':
    text = "(?s)rollout.episodes: 'lockstep' -> 'slots'.*--allow_change=rollout"
    with pytest.raises(ValueError, match=text):
      loop.Trainer(config, str(tmp_path))
    allowed = ('rollout.episodes',)
  loop.Trainer(config, str(tmp_path), allow_change=allowed).run()
  (rows, lines), (known, expected) = record(tmp_path), record(whole[0])
  assert ('changed/rollout.episodes' in rows[-1]) == bool(allowed)
  rows[-1].pop('changed/rollout.episodes', None)
  assert lines == expected and timeless(rows) == timeless(known)
  left = 'episodes' in json.loads(path.read_text())['rollout']
  assert left == (not allowed)  # a changed run has a new file


@pytest.fixture(scope='module', name='across')
def _across(tmp_path_factory):
  """The directory of a run whose episodes are played across updates."""
  workdir = tmp_path_factory.mktemp('across')
  loop.Trainer(ungated(4, staleness=2), str(workdir)).run()
  return workdir


@pytest.fixture(name='whole_batches')
def _whole_batches(monkeypatch):
  """Runs that start have batches of which no episode starts early."""
  monkeypatch.setattr(turns, 'what_waits', lambda config: 'a test')


def test_episodes_across_updates_are_those_of_lagged_weights(
  across, whole_batches, tmp_path, record
):
  """E2: group g is trained in update g // N and sampled K updates before."""
  loop.Trainer(ungated(4, staleness=2), str(tmp_path)).run()
  check_same_episodes(record(across), record(tmp_path))
  rows, _ = record(across)
  behind = [row['rollout/steps_behind'] for row in rows if row['step']]
  steps = behind[-1] / 2
  assert behind == [0, steps, 2 * steps, 2 * steps] and steps > 0


@pytest.mark.parametrize('first', [1, 3])
def test_a_run_across_updates_continues(across, tmp_path, record, first):
  """E0: open episodes start again with their weights and their answers."""
  loop.Trainer(ungated(first, staleness=2), str(tmp_path)).run()
  loop.Trainer(ungated(4, staleness=2), str(tmp_path)).run()
  (rows, lines), (known, expected) = record(tmp_path), record(across)
  assert lines == expected and timeless(rows) == timeless(known)


def test_rows_of_a_run_wait_on_the_host(tmp_path, record):
  """E0: across updates, 4 of 8 rows have places; it continues with other room
  on the host."""
  changes = {'staleness': 1, 'slots': 4}
  loop.Trainer(ungated(3, **changes), str(tmp_path / 'whole')).run()
  changes['cache_tokens'] = 4 * 22
  for iterations in (2, 3):
    changes['host_cache_tokens'] = 22 * (iterations + 1)
    config = ungated(iterations, **changes)
    trainer = loop.Trainer(config, str(tmp_path / 'host'))
    trainer.run()
    assert 0 < trainer.parts.runner.host_cache.most <= 4 * 22
  (rows, lines), (known, expected) = (
    record(tmp_path / name) for name in ('host', 'whole')
  )
  assert lines == expected and timeless(rows) == timeless(known)
  assert rows[-1]['cache/device'] > 0 and 'cache/device' not in known[-1]


def train_delayed(config, workdir, delayed_calls, seed):
  """Trains with seeded delays, of which some are long, in place of workers."""
  settings = dataclasses.replace(config.verifier, num_workers=0)
  config = dataclasses.replace(config, verifier=settings)
  trainer = loop.Trainer(config, str(workdir))
  journal = trainer.parts.runner._journal

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.3 if timeout == 0.0 else timeout)

  def make(request):
    (answer,) = journal.pool.ask([request.payload])
    return 'ok', answer

  journal._calls._calls = Ticking(
    make,
    seed=seed,
    delay=lambda rng: rng.paretovariate(0.7) - 1,
    most=(2, 100)[seed % 2],
  )
  trainer.run()
  return trainer


@pytest.mark.parametrize('seed', [0, 1])
def test_the_order_of_answers_changes_no_weight(
  across, tmp_path, record, delayed_calls, seed
):
  """E0: seeded delays in place of worker processes, across updates."""
  config = ungated(4, staleness=2)
  train_delayed(config, tmp_path, delayed_calls, seed)
  (rows, lines), (known, expected) = record(tmp_path), record(across)
  assert lines == expected and timeless(rows) == timeless(known)


@pytest.fixture(name='rallies', scope='module')
def _rallies():
  """(iterations, fields of the rollout) -> games of the policy with itself, or
  with what the method says."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(PATH.parents[1])
    import misbehaving_environments

    def make(iterations, method=None, **more):
      config = make_config(method or spiral.get_method(), iterations)
      task = misbehaving_environments.RallyTask()
      return changed(dataclasses.replace(config, task=task), **more)

    yield make


@pytest.mark.parametrize(
  'rollout', [None, Opponent(rule=CopyEvery(iterations=1))]
)
def test_games_have_the_same_rows_in_any_order_of_answers(
  rallies, tmp_path, record, delayed_calls, rollout
):
  """E0, also if the run stops."""
  method = dataclasses.replace(spiral.get_method(), rollout=rollout)

  def config(iterations, **more):
    return rallies(iterations, method, **more)

  loop.Trainer(config(3), str(tmp_path / 'whole')).run()
  rows, lines = record(tmp_path / 'whole')
  assert {line['role'] for line in lines} == {0, 1}
  loop.Trainer(config(2), str(tmp_path / 'parts')).run()
  train_delayed(config(3), tmp_path / 'parts', delayed_calls, 1)
  known, others = record(tmp_path / 'parts')
  assert lines == others and timeless(rows) == timeless(known)


def test_whole_batches_have_the_lag_only(rallies, tmp_path, record):
  """Games against an opponent: the weights of one update before, by the log of
  iterations; none starts early."""
  opponent = Opponent(rule=CopyEvery(iterations=1))
  method = dataclasses.replace(spiral.get_method(), rollout=opponent)
  trainer = loop.Trainer(rallies(3, method, staleness=1), str(tmp_path))
  trainer.run()
  assert not isinstance(trainer.parts.collector, SlotCollector)
  rows, _ = record(tmp_path)
  behind = [row['rollout/steps_behind'] for row in rows if row['step']]
  assert behind == [0, 1, 1]


@pytest.mark.parametrize('order', ['fixed', 'arrival'])
def test_games_across_updates(
  request, rallies, tmp_path, record, delayed_calls, order
):
  """E2 against lagged weights, E0 if it stops; both players are trained."""

  def run(folder, iterations, seed):
    config = rallies(iterations, staleness=1, order=order, num_prompts=4)
    train_delayed(config, tmp_path / folder, delayed_calls, seed)
    return record(tmp_path / folder)

  rows, lines = run('whole', 4, 0)
  if order == 'fixed':
    run('parts', 2, 1)
    known, others = run('parts', 4, 3)
    assert lines == others and timeless(rows) == timeless(known)
    request.getfixturevalue('whole_batches')
    config = rallies(4, staleness=1, num_prompts=4)
    loop.Trainer(config, str(tmp_path / 'lagged')).run()
    check_same_episodes((rows, lines), record(tmp_path / 'lagged'))
  games = {}
  for line in lines:
    game = line['step'], line['prompt_id'] // 2, line['sample']
    games.setdefault(game, []).append((line['role'], line['turns']))
  assert {len(roles) for roles in games.values()} == {2}
  for roles in games.values():
    assert {role for role, _ in roles} == {0, 1}


def check_repeated(found, expected):
  """E0: the lines, the metrics, and the weights at the end."""
  (rows, lines), (known, others) = (pair[0] for pair in (found, expected))
  assert lines == others and timeless(rows) == timeless(known)
  states = [trainer.state.params for _, trainer in (found, expected)]
  jax.tree.map(np.testing.assert_array_equal, *states)


def in_any_order(run):
  """(rows, lines) of four iterations, which another order and a stop repeat."""
  first = run('first', 4, 0)
  check_repeated(run('second', 4, 1), first)
  run('parts', 2, 1)
  check_repeated(run('parts', 4, 2), first)
  return first[0]


@pytest.fixture(name='whimsical')
def _whimsical(monkeypatch):
  """A function of the fields of a rollout: a run whose rewards vary.

  filtered: whether groups with high rewards are dropped.
  """
  monkeypatch.syspath_prepend(PATH.parents[1])
  import misbehaving_environments

  def make(iterations, filtered, **more):
    config = ungated(iterations, max_rounds=2, **more)
    method = config.method
    if filtered:
      band = AccuracyBand(low=0.0, high=BAND)
      method = dataclasses.replace(method, group_filter=band)
    return dataclasses.replace(
      config,
      method=method,
      task=misbehaving_environments.Whimsical(),
      evaluation=dataclasses.replace(config.evaluation, every=0),
      guards=dataclasses.replace(config.guards, log_rollouts=9),
    )

  return make


def test_models_judge_groups_as_they_end(
  whimsical, tmp_path, record, delayed_calls
):
  """E0: any order of answers, and a run that stops; the policy is the judge.

  A group is judged by the weights that have sampled it, once.
  """
  plain = whimsical(4, True)
  tokenizer = CharTokenizer(plain.task.alphabet)
  model = dataclasses.replace(
    plain.model.config, vocab_size=tokenizer.vocab_size, value_head=True
  )
  params = params_lib.init_params(model, jax.random.key(3))
  params['value_head']['w'] += 1.0
  path = str(tmp_path / 'model')
  model_dir.save_model(path, model, params, tokenizer)
  judge = Judge(
    template='{prompt}{response}',
    labels=('a', 'b'),
    turn='{action}',
    weight=0.5,
    max_tokens=64,
  )

  def run(folder, iterations, seed):
    config = whimsical(iterations, True, staleness=1)
    config = dataclasses.replace(
      config,
      judges=(judge,),
      reward_models=(RewardModel(path=path, weight=0.1),),
    )
    trainer = train_delayed(config, tmp_path / folder, delayed_calls, seed)
    return record(tmp_path / folder), trainer

  rows, lines = in_any_order(run)
  assert all(0 < row['reward/judge'] < 1 for row in rows if row['step'])
  assert all(row['reward/learned'] != 0 for row in rows if row['step'])
  assert all('rollout/unread_judgements' in row for row in rows if row['step'])
  weights = {
    (line['step'], line['prompt_id']): line['weight'] for line in lines
  }
  assert len(weights) == 2 * 4


@pytest.mark.parametrize('filtered', [False, True])
def test_a_run_by_arrival_is_a_function_of_its_closings(
  whimsical, tmp_path, record, delayed_calls, filtered
):
  """E0: one that stops, continues and is in another order of answers each time
  equals a whole one that has its file of closings and nothing else of it."""

  def run(folder, iterations, seed):
    config = whimsical(iterations, filtered, staleness=2, order='arrival')
    trainer = train_delayed(config, tmp_path / folder, delayed_calls, seed)
    return record(tmp_path / folder), trainer

  run('parts', 2, 1)
  parts = run('parts', 5, 3)
  path = tmp_path / 'parts' / FOLDER / FILE
  closings = [json.loads(line) for line in path.read_text().splitlines()]
  used = [g for x in closings for g in (*x['groups'], *x['dropped'])]
  assert len(closings) == 5 and len(used) == len(set(used))
  assert used != sorted(used)
  (tmp_path / 'whole' / FOLDER).mkdir(parents=True)
  (tmp_path / 'whole' / FOLDER / FILE).write_bytes(path.read_bytes())
  whole = run('whole', 5, 5)
  check_repeated(parts, whole)
  most = [row['rollout/steps_behind_max'] for row in parts[0][0]]
  assert 0 < max(most) <= 2
  assert any(x['dropped'] for x in closings) == filtered


@pytest.mark.slow
def test_two_hundred_updates_by_arrival_train_each_group_once(
  whimsical, tmp_path, delayed_calls
):
  """No group is dropped: all that started K updates before the end are used."""
  updates, staleness = 200, 2
  config = whimsical(updates, False, staleness=staleness, order='arrival')
  train_delayed(config, tmp_path, delayed_calls, 1)
  path = tmp_path / FOLDER / FILE
  closings = [json.loads(line) for line in path.read_text().splitlines()]
  used = [group for one in closings for group in one['groups']]
  assert len(closings) == updates and not any(x['dropped'] for x in closings)
  assert len(used) == len(set(used)) == 2 * updates
  # With weights v at most (v + 2) N groups have started.
  assert set(used) >= set(range(2 * (updates - staleness)))
  assert used != sorted(used)


def test_a_filter_has_the_same_groups_in_any_order_of_answers(
  whimsical, tmp_path, record, delayed_calls
):
  """E0: dynamic sampling in the fixed order, and a run of it that stops."""

  def run(folder, iterations, seed):
    config = whimsical(iterations, True, staleness=1)
    trainer = train_delayed(config, tmp_path / folder, delayed_calls, seed)
    return record(tmp_path / folder), trainer

  rows, lines = in_any_order(run)
  assert {row['rollout/steps_behind_max'] for row in rows} == {0, 1}
  groups = {}
  for line in lines:
    group = line['step'], line['prompt_id']
    groups.setdefault(group, []).append((line['reward'], line['weight']))
  assert len(groups) == 2 * 4
  for pairs in groups.values():
    reward_G, weight_G = zip(*pairs, strict=True)
    assert set(weight_G) == {float(np.mean(reward_G) <= BAND)}


def test_a_timeline_of_one_iteration(tmp_path):
  """Spans of device, calls and updates of the second iteration only."""
  config = make_config(grpo.get_method(), 2)
  rl_jax.train(config, str(tmp_path), timeline=profiling.Window(2, 2))
  events = json.loads((tmp_path / 'timeline.json').read_text())['traceEvents']
  names = {event['name'] for event in events}
  assert {'step', 'reset', 'burst', 'update 2'} <= names
  assert 'update 1' not in names
