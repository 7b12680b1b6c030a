"""Trainings in sequence: commands, what is finished, and exact resume."""

import dataclasses
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest

from experiments import pipeline
from experiments.flags import configuration
from experiments.pipelines.stages import Stage, commands, load
from experiments.sweeps import children
from rl_jax.config import validate
from rl_jax.records.metrics import read_jsonl

RECIPES = sorted(
  path.stem
  for path in (configuration.ROOT / 'configs' / 'pipelines').glob('*.py')
  if path.stem != '__init__'
)
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
PLACE_FLAGS = configuration.ROOT / 'experiments/flags/places.py'
EVALUATION_FLAGS = configuration.ROOT / 'experiments/flags/evaluation.py'

ROWS = ''.join(
  json.dumps(
    {'prompt': f'{gap}+1=', 'chosen': '1', 'rejected': '2'}
    | {'score_chosen': gap, 'score_rejected': 0.0}
  )
  + '\n'
  for gap in (0.0, 1.0)
)
STEPS = ''.join(
  json.dumps(
    {'prompt': f'{n}+1=', 'completions': ['<1>', '2'], 'labels': [True, False]}
  )
  + '\n'
  for n in range(200)
)


@pytest.mark.parametrize('name', RECIPES)
def test_a_seed_reaches_every_stage_that_draws(name):
  """100 times the seed is added; seed 0 and all other flags change nothing."""
  plain, moved = (commands(load(name), 'runs', seed) for seed in (0, 2))
  assert plain == commands(load(name), 'runs')
  for stage, (_, binary, *arguments) in plain.items():
    flag = '--set=seed=' if binary == 'experiments.train' else '--seed='
    source = (configuration.ROOT / f'{binary.replace(".", "/")}.py').read_text()
    own = [x for x in arguments if x.startswith(flag)]
    number = int(own[0].removeprefix(flag)) if own else 0
    draws = "'seed'," in source or binary == 'experiments.train'
    expected = [x for x in arguments if x not in own]
    expected += [f'{flag}{200 + number}'] * draws
    assert moved[stage][2:] == expected


@pytest.mark.parametrize('name', RECIPES)
def test_recipes_become_commands(name, tmp_path):
  """Folders are filled in, every flag, --method and --set is known, once."""
  planned = commands(load(name), str(tmp_path))
  for stage, (_, binary, *arguments) in planned.items():
    values = {key: [] for key in ('config', 'method', 'set', 'add')}
    for argument in arguments:
      key, _, value = argument[2:].partition('=')
      values.setdefault(key, []).append(value)
    if binary != 'experiments.train':
      module = configuration.ROOT / f'{binary.replace(".", "/")}.py'
      defined = module.read_text() + PLACE_FLAGS.read_text()
      if binary == 'experiments.evaluate':
        defined += EVALUATION_FLAGS.read_text()
      assert all(repr(key) in defined for key in values if values[key])
      (out,) = values.get('out') or values['scores_out']
      if binary == 'experiments.sft':  # a model
        assert out == str(tmp_path / stage)
        continue
      if binary == 'experiments.papers.worlds.step_labels':  # a folder
        assert out == str(tmp_path / stage)
        pathlib.Path(out).mkdir()
        (pathlib.Path(out) / 'exact.jsonl').write_text(STEPS)
        continue
      assert out == str(tmp_path / f'{stage}.jsonl')
      text = ROWS  # of every gap that a split asks for
      if binary == 'experiments.evaluate':
        text = json.dumps({'responses': ['1', '2']})
      pathlib.Path(out).write_text(text)
      continue
    assert values['workdir'] == [str(tmp_path / stage)]
    paths = [change.partition('=')[0] for change in values['set']]
    assert len(paths) == len(set(paths))  # which the command refuses
    config = configuration.build(
      values['config'][0], values['method'][0], values['set'], values['add']
    )
    validate(config)


@pytest.mark.parametrize(
  'stages, message',
  [
    ((Stage(name='a b', flags=()),), "stage 'a b': names are identifiers"),
    ((Stage(name='a', flags=()),) * 2, "stage 'a': names"),
    ((Stage(name='a', binary='trane', flags=()),), 'no experiments.trane'),
    ((Stage(name='a', flags=('--set=x={b}',)),), '{b} in .* none of the'),
    ((Stage(name='a', flags=('--set=x={',)),), "'a': '--set=x={': .*braces"),
    ((Stage(name='a', flags='--set=x=1'),), "'a': flags = .*expected a tuple"),
    ((Stage(name='a', flags=('--x', 3)),), "'a': flags = .*tuple of texts"),
  ],
)
def test_wrong_stages_are_named(stages, message):
  with pytest.raises(ValueError, match=message):
    commands(stages, 'runs/x')


@pytest.mark.parametrize(
  ('code', 'text'),
  [
    (143, 'code 143: run the same command'),
    (-9, 'code -9: run the same command'),
    (2, 'code 2: repair what it says, then run the same command'),
  ],
)
def test_an_error_of_a_stage_is_not_to_be_repeated(code, text):
  assert text in pipeline.ended(code)


def test_an_unknown_recipe_lists_those_that_exist():
  with pytest.raises(ValueError, match='--pipeline=tolu3: .*tulu3'):
    load('tolu3')


@pytest.mark.parametrize(
  'text, message',
  [
    ('', r'has no function get_stages\(\)'),
    ('get_stages = 3', r'has no function get_stages\(\)'),
    ('get_stages = tuple', r'returned \(\): expected Stages'),
    ('get_stages = lambda: ("a",)', r"returned \('a',\): expected Stages"),
  ],
)
def test_a_file_without_stages_is_refused(text, message, tmp_path):
  path = tmp_path / 'recipe.py'
  path.write_text(text)
  with pytest.raises(ValueError, match=message):
    load(str(path))


@pytest.mark.parametrize('text', ['{', '[1]', '{"a": {}}', '{"a": 1}'])
def test_a_damaged_record_is_named(text, tmp_path):
  path = tmp_path / pipeline.STATE
  path.write_text(text)
  with pytest.raises(ValueError, match='pipeline.json is not a record'):
    pipeline.finished(str(path), {})


def test_a_finished_stage_keeps_its_command(tmp_path):
  """Another one would not be what made its folder."""
  path = tmp_path / pipeline.STATE
  planned = commands((Stage(name='a', flags=('--workdir={out}',)),), 'x')
  assert pipeline.finished(str(path), planned) == {}
  path.write_text(json.dumps({'a': {'command': planned['a'], 'seconds': 1}}))
  assert list(pipeline.finished(str(path), planned)) == ['a']
  with pytest.raises(ValueError, match="stage 'a' is finished with another"):
    pipeline.finished(str(path), {'a': [*planned['a'], '--seed=1']})


@pytest.mark.parametrize('number', SIGNALS)
@pytest.mark.parametrize('when', ['before', 'behind'])
def test_a_signal_while_a_stage_starts_ends_it(number, when, monkeypatch):
  """Handlers are there first; the child is signalled once it runs."""
  start, missed = subprocess.Popen, []
  before = signal.signal(number, lambda *_: missed.append(number))

  def started(command, **more):
    if when == 'before':
      signal.raise_signal(number)
    process = start(command)
    if when == 'behind':
      signal.raise_signal(number)
    return process

  monkeypatch.setattr(subprocess, 'Popen', started)
  try:
    assert children.run_all([['sleep', '3']]) == [-number]
    signal.raise_signal(number)  # the handler of before is back
  finally:
    signal.signal(number, before)
  assert missed == [number]


@pytest.mark.parametrize('number', SIGNALS)
def test_processes_get_the_signals_of_their_parent(number):
  """Also Ctrl-C that no terminal sent: by `kill -INT`, or from a notebook."""
  before = signal.signal(number, signal.SIG_DFL)  # scripts ignore Ctrl-C
  timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
  try:
    timer.start()
    assert children.run_all([['sleep', '9'], ['sleep', '9']]) == [-number] * 2
  finally:
    timer.join()
    signal.signal(number, before)


def test_a_stage_ignores_what_the_pipeline_ignores():
  """A job in the background of a script ignores Ctrl-C in this way."""
  code = 'import signal as s; exit(s.getsignal(s.SIGINT) == s.SIG_IGN)'
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    assert children.run_all([[sys.executable, '-c', code]]) == [1]
  finally:
    signal.signal(signal.SIGINT, before)


RECIPE = """
from experiments.pipelines.stages import Stage

SMALL = ('--config=configs/worlds/bandit.py', '--method=grpo',
         '--workdir={out}',
         '--set=evaluation.every=0', '--set=verifier.num_workers=0',
         '--set=rollout.num_prompts=4', '--set=iterations=40',
         '--set=checkpoint.every=1')

def get_stages():
  return (Stage(name='first', flags=SMALL),
          Stage(name='second', flags=(*SMALL, '--set=model.path={first}')))
"""


def rows_of(folder):
  """Metrics of both stages, without times."""
  return [
    {k: v for k, v in row.items() if not k.startswith('time/')}
    for stage in ('first', 'second')
    for row in read_jsonl(folder / stage / 'metrics.jsonl')
  ]


SMALL = tuple(
  f'--set=model.config.{field}'
  for field in ('num_layers=1', 'width=16', 'mlp_size=32')
)


def small_stages(name):
  """The recipe on one-digit sums: a short warm start, then a few iterations."""
  stages = []
  for stage in load(name):
    own = [x for x in stage.flags if not x.startswith('--set=iterations')]
    if stage.binary == 'train':
      first = not any('model.path' in flag for flag in own)
      own.append(f'--set=iterations={150 if first else 3}')
      own += [*(SMALL if first else ()), '--set=evaluation.num_prompts=16']
      sums = '--config=configs/worlds/preferences.py' in own
      if sums and not any(flag.startswith('--set=task=') for flag in own):
        own.append('--set=task.task.digits=1')
    stages.append(dataclasses.replace(stage, flags=tuple(own)))
  return stages


def write_recipe(path, stages):
  """A file for --pipeline."""
  path.write_text(
    'from experiments.pipelines.stages import Stage\n\n\n'
    f'def get_stages():\n  return {stages!r}\n'
  )
  return [sys.executable, '-m', 'experiments.pipeline', f'--pipeline={path}']


@pytest.mark.slow
@pytest.mark.parametrize(
  'name',
  [
    *('expert_iteration', 'fevo', 'irft', 'iterative_dpo', 'mpo', 'okapi'),
    *('pit', 'tulu3'),
  ],
)
def test_a_recipe_runs_small(name, tmp_path):
  """Every stage of a few iterations, with the files that pass between them."""
  stages = small_stages(name)
  command = write_recipe(tmp_path / 'recipe.py', stages)
  subprocess.run([*command, f'--workdir={tmp_path / "run"}'], check=True)
  done = json.loads((tmp_path / 'run' / pipeline.STATE).read_text())
  assert list(done) == [stage.name for stage in stages]


@pytest.mark.slow
def test_killed_stages_between_trainings_are_repeated(tmp_path):
  """Rows of a run and scores of a reward model: all of a file or none of it."""
  stages, workdir = small_stages('mpo')[:4], tmp_path / 'run'
  command = write_recipe(tmp_path / 'recipe.py', stages)
  command.append(f'--workdir={workdir}')
  subprocess.run(command, check=True)
  names = ('pairs', 'scores')
  assert [stage.name for stage in stages[2:]] == list(names)
  files = {name: workdir / f'{name}.jsonl' for name in names}
  whole = {name: path.read_bytes() for name, path in files.items()}
  state = workdir / pipeline.STATE
  for name in names:
    done = json.loads(state.read_text())
    state.write_text(json.dumps({k: v for k, v in done.items() if k != name}))
    files[name].unlink()
    cut = subprocess.Popen(
      command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert next(line for line in cut.stdout if line.startswith('--- ')) == (
      f'--- {name}: ' + shlex.join(['python', *done[name]['command']]) + '\n'
    )
    os.killpg(cut.pid, signal.SIGKILL)
    assert cut.wait() == -signal.SIGKILL
    cut.stdout.close()
    assert not files[name].exists()
    assert name not in json.loads(state.read_text())
    subprocess.run(command, check=True)
    assert files[name].read_bytes() == whole[name]


@pytest.mark.slow
def test_a_killed_stage_continues_bit_for_bit(tmp_path):
  """E0: the second stage is cut once it has saved; the first is not repeated.

  SIGTERM saves again; SIGKILL ends pipeline and stage at once.
  """
  recipe = tmp_path / 'recipe.py'
  recipe.write_text(RECIPE)

  def start(workdir):
    return subprocess.Popen(
      [sys.executable, '-m', 'experiments.pipeline']
      + [f'--pipeline={recipe}', f'--workdir={tmp_path / workdir}'],
      cwd=pathlib.Path(__file__).resolve().parents[2],
      env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
      start_new_session=True,
    )

  assert start('whole').wait() == 0
  kills = {
    'terminated': (143, lambda run: run.send_signal(signal.SIGTERM)),
    'killed': (
      -signal.SIGKILL,
      lambda run: os.killpg(run.pid, signal.SIGKILL),
    ),
  }
  for name, (code, kill) in kills.items():
    folder, cut = tmp_path / name, start(name)
    while not any(folder.glob('second/checkpoints/*/COMMITTED')):
      assert cut.poll() is None
      time.sleep(0.05)
    kill(cut)
    assert cut.wait() == code
    done = json.loads((folder / pipeline.STATE).read_text())
    assert list(done) == ['first']
    assert start(name).wait() == 0
    assert rows_of(folder) == rows_of(tmp_path / 'whole')
    assert '| second | 40 |' in (folder / pipeline.REPORT).read_text()
