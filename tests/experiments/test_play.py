"""Episodes in the terminal: a person's, of one turn, and of a policy."""

import dataclasses
import io

from absl import app, flags
from absl.testing import flagsaver
import jax
import pytest

from configs.methods import grpo
from configs.worlds import arithmetic, keydoor
from experiments import play
from rl_jax.runs import loop
from rl_jax.runtime import mesh
from rl_jax.worlds import KeyDoor


@pytest.fixture
def played(capsys, monkeypatch):
  """(arguments) -> the lines that the program prints.

  Flags are not validated: programs that other tests import require theirs, and
  may have another default of the same flag.
  """
  monkeypatch.setattr(flags.FlagValues, 'validate_all_flags', lambda _: None)

  def lines(*arguments):
    for name in flags.FLAGS:
      flags.FLAGS[name].unparse()
    flags.FLAGS(['play', *arguments])
    play.main([])
    return capsys.readouterr().out.split('\n')[:-1]

  with flagsaver.flagsaver():
    yield lines


def test_a_person_solves_an_episode(played, monkeypatch):
  """The shortest solution: rewards of each turn, tokens, and their sum."""
  task = keydoor.get_config(grpo.get_method()).task
  example = task.example('test', 3)
  actions = task.actions(example)
  text = '\n'.join(['x', '', *actions, 'u']) + '\n'
  monkeypatch.setattr('sys.stdin', io.StringIO(text))
  lines = played('--config=keydoor', '--index=3', '--split=test')
  assert lines[0] == 'prompt:' and lines[1].startswith('k')
  lines = [line.removeprefix('> ') for line in lines]
  assert lines[2].startswith("  character 'x' of 'x' is not in the alphabet")
  assert lines[4].startswith('  turn 1: reward 0 (outcome 0, progress 0, maze')
  assert lines[-1] == 'end: done, reward 1'
  turns = [line for line in lines if line.startswith('  turn')]
  assert len(turns) == len(actions) + 1
  assert lines[3] == '  0 tokens: []' and '  1 tokens: [' in lines[6]


def test_end_of_input_leaves_and_one_turn_is_enough(played, monkeypatch):
  monkeypatch.setattr('sys.stdin', io.StringIO(''))
  assert played('--config=keydoor')[-1].endswith('end: left, reward 0')
  task = arithmetic.get_config(grpo.get_method()).task
  right = task.target(task.example('test', 0))
  monkeypatch.setattr('sys.stdin', io.StringIO(f'{right}\n'))
  lines = played('--config=arithmetic', '--split=test')
  assert lines[-1] == 'end: done, reward 1'


def test_bad_flags_are_named(played):
  with pytest.raises(app.UsageError, match='give --config or --checkpoint'):
    played()
  with pytest.raises(app.UsageError, match='--index=99999 .* has 100 examples'):
    played('--config=keydoor', '--index=99999', '--split=validation')


@pytest.mark.slow
def test_a_policy_plays(played, tmp_path):
  """The policy plays as it was trained: turns, tokens, and the same episode."""
  config = keydoor.get_config(grpo.get_method())
  small = dataclasses.replace(
    config.model.config, num_layers=1, width=16, mlp_size=16
  )
  config = dataclasses.replace(
    config,
    iterations=1,
    task=KeyDoor(),
    model=dataclasses.replace(config.model, config=small),
    evaluation=dataclasses.replace(config.evaluation, every=0),
  )
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    loop.Trainer(config, str(tmp_path)).run()
    lines = played(f'--checkpoint={tmp_path}', '--seed=3')
    assert lines[0] == 'prompt:' and lines[2].startswith('> ')
    assert sum('turn' in line for line in lines) >= 1
    assert lines[-1].startswith('end: ')
    again = played(f'--checkpoint={tmp_path}', '--seed=3')
    assert again == lines
