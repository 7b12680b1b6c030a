"""The binaries: error messages, and a tiny run end to end."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax import overrides
from rl_jax.config import ExperimentConfig
from rl_jax.models.files import model_dir
from rl_jax.records.metrics import read_jsonl
from rl_jax.serialization import from_json

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(name, *arguments, **environment):
  """The finished process of `python -m experiments.NAME`."""
  return subprocess.run(
    [sys.executable, '-m', f'experiments.{name}', *map(str, arguments)],
    cwd=ROOT,
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': '', **environment},
    capture_output=True,
    text=True,
  )


@pytest.mark.parametrize(
  ('arguments', 'parts'),
  [
    (('bandit', 'gropo'), ["'gropo'", "mean 'grpo'", 'clip_cov']),
    (('bandits', 'grpo'), ["'bandits'", "mean 'bandit'", 'arithmetic']),
    (
      ('configs/bandits.py', 'grpo'),
      ['configs/bandits.py: no such file', "mean 'configs/worlds/bandit.py'"],
    ),
    (('/tmp/bandits.py', 'grpo'), ['/tmp/bandits.py: no such file']),
    (
      ('bandit', 'grpo', ['rollout.group_sise=4']),
      ["'group_sise'", "mean 'group_size'", 'num_prompts'],
    ),
    (('bandit', 'grpo', ['seed=x']), ["seed: expected int, got 'x'"]),
    (('bandit', 'grpo', ['seed']), ['--set=seed: expected --set=PATH=VALUE']),
    (
      ('bandit', 'grpo', [], ['method.weights=ClipCow()']),
      ["'ClipCow'", "mean 'ClipCovDrop'"],
    ),
  ],
)
def test_every_mistake_names_what_exists(arguments, parts):
  """Methods, configurations, fields and pieces."""
  with pytest.raises(ValueError) as error:
    configuration.build(*arguments)
  for part in parts:
    assert part in str(error.value)


def test_of_two_values_on_a_command_line_none_is_chosen():
  """Whichever comes last."""
  done = run(
    'train',
    '--config=configs/worlds/bandit.py',
    '--workdir=runs/none',
    '--print_config',
    '--set=seed=1',
    '--set=seed=2',
  )
  assert done.returncode == 2
  assert 'error: --set=seed=... has two values' in done.stderr


def test_help_lists_all_flags_and_exits_with_0():
  """Also those of other modules of experiments."""
  done = run('train', '--help')
  assert done.returncode == 0, done.stderr
  assert 'python -m experiments.train --config=' in done.stdout
  for name in ('workdir', 'config', 'set', 'coordinator', '[no]traceback'):
    assert f'  --{name}: ' in done.stdout, name


def test_a_wrong_flag_is_one_line(answers_of, tmp_path):
  """With the path that --set has for the flag of another library."""
  meant = ('learning_rate', 'num_generations')
  found = answers_of(
    tmp_path,
    {
      'list_methods': [['--helpless']],
      'export_weights': [[]],
      'train': [[f'--{flag}=1'] for flag in meant],
    },
  )
  unknown = "error: Unknown command line flag 'helpless'\n"
  assert found['list_methods'] == [[2, unknown, None]]
  missing = 'error: --checkpoint is missing; --out is missing\n'
  assert found['export_weights'] == [[2, missing, None]]
  for flag, (code, text, _) in zip(meant, found['train'], strict=True):
    assert code == 2 and text.count('\n') == 1
    path = overrides.meant(ExperimentConfig, flag)
    assert f'Did you mean --set={path}=VALUE?' in text


BINARIES = [
  path
  for path in sorted((ROOT / 'experiments').rglob('*.py'))
  if "if __name__ == '__main__':" in path.read_text() and path.stem != 'cli'
]


@pytest.mark.parametrize('path', BINARIES, ids=lambda path: path.stem)
def test_every_binary_has_that_help_and_an_example(path):
  """The docstring, which --help prints, shows a command line."""
  text, name = path.read_text(), path.relative_to(ROOT).with_suffix('')
  command = f'python -m {str(name).replace("/", ".")}'
  assert command in text.split('"""')[1]
  assert 'configuration.run(main' in text or 'argparse' in text


def test_changes_are_applied_after_additions():
  """--set may change the piece that --add has appended."""
  config = configuration.build(
    'configs/worlds/bandit.py',
    'grpo',
    ['method.weights.ClipCovDrop.fraction=0.5', 'rollout.group_size=4'],
    ['method.weights=ClipCovDrop(fraction=0.1)'],
  )
  assert config.method.weights[0].fraction == 0.5
  assert config.rollout.group_size == 4


# JAX_LOG_COMPILES makes any compilation another line on stderr.
@pytest.mark.parametrize(
  ('arguments', 'parts'),
  [
    (
      ('train', '--config=bandit', '--set=optimiser.learning_rate=1'),
      ["'optimiser'", "mean 'optimizer'"],
    ),
    (
      ('train', '--config=bandit', '--set=rollout.group_size=1'),
      ['GroupCenter', '>= 2, got 1'],
    ),
    (
      ('evaluate', '--checkpoint=nowhere', '--data=nowhere.jsonl'),
      ['no such data file: nowhere.jsonl (in /'],
    ),
  ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, parts, tmp_path):
  """On stderr, before anything is compiled, and without a traceback."""
  name, *flags = arguments
  if name == 'train':
    flags.append(f'--workdir={tmp_path / "run"}')
  done = run(name, *flags, JAX_LOG_COMPILES='1')
  assert done.returncode == 2, done.stderr
  (line,) = done.stderr.strip().splitlines()
  assert line.startswith('error: ')
  for part in parts:
    assert part in line
  assert not (tmp_path / 'run' / 'experiment.json').exists()


@pytest.mark.slow
@pytest.mark.parametrize(
  ('arguments', 'part'),
  [
    (('train', '--config=bandit', '--method=gropo'), "mean 'grpo'"),
    (('train', '--config=bandits'), "mean 'bandit'"),
    (
      ('train', '--config=bandit', '--set=mesh.tensor=64'),
      'needs 64 devices, but there are 1',
    ),
    (('train', '--config=arithmetic', '--set=model.path=nowhere'), 'nowhere'),
    (('sft',), 'exactly one of --config and --data'),
    (('sft', '--data=pairs.jsonl'), '--data needs --model'),
    (('sft', '--data=x', '--model=HERE/out'), 'would replace --model'),
    (
      ('sft', '--data=x', '--model=y', '--set=model.lora_rank=x'),
      'model.lora_rank: expected int',
    ),
    (('evaluate', '--checkpoint=nowhere', '--data=bandit'), 'nowhere'),
    (('evaluate', '--checkpoint=x', '--data=bandits'), "mean 'bandit'"),
    (
      ('evaluate', '--checkpoint=x', '--data=bandit', '--opponent=y'),
      "opponent = 'y': Bandit is not a game of two players",
    ),
  ],
)
def test_more_mistakes(arguments, part, tmp_path):
  """Exit code 2 and one line with the remedy."""
  name, *flags = (x.replace('HERE', str(tmp_path)) for x in arguments)
  out = {'train': ['--workdir=' + str(tmp_path / 'run')], 'evaluate': []}
  flags += out.get(name, ['--out=' + str(tmp_path / 'out')])
  done = run(name, *flags)
  assert done.returncode == 2, done.stderr
  (line,) = done.stderr.strip().splitlines()
  assert line.startswith('error: ') and part in line


def test_the_configuration_can_be_printed(tmp_path):
  """Complete JSON on stdout, without training."""
  done = run(
    'train',
    '--config=configs/worlds/bandit.py',
    '--method=dapo',
    '--set=seed=5',
    '--print_config',
    f'--workdir={tmp_path / "run"}',
  )
  assert done.returncode == 0, done.stderr
  assert from_json(done.stdout) == configuration.build(
    'bandit', 'dapo', ['seed=5']
  )
  assert not (tmp_path / 'run').exists()


@pytest.mark.slow
def test_sft_and_evaluate_take_a_mesh(tmp_path):
  """E1 for weights, E2 for the evaluation: --set=mesh as in train."""
  devices = '--xla_force_host_platform_device_count=4'
  mesh, found = ('--set=mesh.fsdp=2', '--set=mesh.tensor=2'), []
  for name, more in (('one', ('--set=mesh.data=1',)), ('split', mesh)):
    flags = devices if more is mesh else ''
    done = run(
      'sft',
      '--config=configs/worlds/bandit.py',
      '--steps=4',
      '--evaluate_every=4',
      '--batch_size=8',
      '--max_response_tokens=2',
      f'--out={tmp_path / name}',
      *more,
      XLA_FLAGS=flags,
    )
    assert done.returncode == 0, done.stderr
    _, params, _ = model_dir.load_model(str(tmp_path / name))
    done = run(
      'evaluate',
      f'--checkpoint={tmp_path / "one"}',
      '--data=configs/worlds/bandit.py',
      '--num_samples=4',
      '--max_new_tokens=2',
      *more,
      XLA_FLAGS=flags,
    )
    assert done.returncode == 0, done.stderr
    found.append((params, json.loads(done.stdout)))
  (one, line), (split, other) = found
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5),
    split,
    one,
  )
  for name in ('checkpoint', 'settings'):
    assert other.pop(name) == line.pop(name)
  assert other == pytest.approx(line, rel=1e-5)
  saved = from_json((tmp_path / 'split.work/experiment.json').read_text())
  assert (saved.mesh.fsdp, saved.mesh.tensor) == (2, 2)


@pytest.mark.slow
def test_warm_start_training_and_evaluation(tmp_path):
  """sft, train from its model, evaluate both; another config is refused."""
  warm, work = tmp_path / 'warm', tmp_path / 'run'
  done = run(
    'sft',
    '--config=configs/worlds/bandit.py',
    '--steps=30',
    '--evaluate_every=10',
    '--batch_size=8',
    '--learning_rate=3e-2',
    '--warmup_steps=0',
    '--stop_accuracy=0.5',
    '--max_response_tokens=2',
    f'--out={warm}',
  )
  assert done.returncode == 0, done.stderr
  assert 'greedy accuracy' in done.stdout

  def evaluate(checkpoint):
    done = run(
      'evaluate',
      f'--checkpoint={checkpoint}',
      '--data=configs/worlds/bandit.py',
      '--num_samples=4',
      '--max_new_tokens=2',
      f'--out={tmp_path / "rows.json"}',
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.strip().splitlines()
    return json.loads(line)

  before = evaluate(warm)
  assert before['n'] == 8 and before['pass_at_1'] >= 0.5
  assert before['pass_at_4'] >= before['pass_at_2'] >= before['avg_at_4']
  train = (
    'train',
    '--config=configs/worlds/bandit.py',
    f'--set=model.path={warm}',
    '--set=iterations=20',
    f'--workdir={work}',
  )
  done = run(*train)
  assert done.returncode == 0, done.stderr
  assert 'done: reward' in done.stdout
  steps = [row['step'] for row in read_jsonl(work / 'metrics.jsonl')]
  assert steps == list(range(21))
  assert evaluate(work)['pass_at_1'] >= before['pass_at_1']
  rows = json.loads((tmp_path / 'rows.json').read_text())
  assert len(rows['greedy']) == 8 and len(rows['samples'][0]) == 4
  done = run(*train, '--set=rollout.temperature=0.5')
  assert done.returncode == 2
  assert 'rollout.temperature: 1.0 -> 0.5' in done.stderr
