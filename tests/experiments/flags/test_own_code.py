"""Errors in the user's own files are one line that says where."""

import functools
import re
import subprocess
import sys

from absl import flags
import pytest

from experiments.flags import configuration, own_code

CONFIG = """
import dataclasses
from configs.worlds import bandit

def get_config(method):
  return dataclasses.replace(bandit.get_config(method), {change})
"""
METHOD = """
from rl_jax.method import Method
from rl_jax.pieces import losses

def get_method():
  return {method}
"""


def error_of(function, *arguments):
  """The error that a call raises."""
  with pytest.raises(Exception) as caught:
    function(*arguments)
  return caught.value


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (
      'iteration=6',
      r"TypeError: .* argument 'iteration'. Did you mean 'iterations'\? \({}:6"
      ' in get_config; --traceback shows all calls',
    ),
    ('seed=nothing', "NameError: name 'nothing' is not defined \\({}:6 in get"),
    ('seed=int("x")', r"invalid literal for int.*: 'x' \({}:6 in get_config"),
  ],
)
def test_the_place_in_a_configuration(user_modules, tmp_path, change, message):
  file = tmp_path / 'my_config.py'
  file.write_text(CONFIG.format(change=change))
  error = error_of(configuration.build, str(file))
  message = message.format(re.escape(str(file)))
  assert re.match(message, own_code.described(error))


@pytest.mark.parametrize(
  ('method', 'meant'),
  [('Method(loses=3)', 'losses'), ('losses.PPOClip(clip_lo=1)', 'clip_low')],
)
def test_the_field_that_was_meant(user_modules, tmp_path, method, meant):
  """The field of a class, and of a class in a module."""
  file = tmp_path / 'my_method.py'
  file.write_text(METHOD.format(method=method))
  error = error_of(configuration.load_method, str(file))
  assert f'Did you mean {meant!r}?' in own_code.described(error)


def test_a_place_is_said_once(user_modules, tmp_path):
  """A text that has it, and what is of no file of the user, stay."""
  file = tmp_path / 'my_method.py'
  file.write_text('def get_method():\n  raise ValueError(f"{__file__}:2: x")\n')
  error = error_of(configuration.load_method, str(file))
  assert own_code.described(error) == f'{file}:2: x'
  assert own_code.described(error_of(int, 'x')) == str(error_of(int, 'x'))
  assert own_code.described(MemoryError()) == 'MemoryError'


def test_the_call_of_a_function_with_other_arguments(user_modules, tmp_path):
  file = tmp_path / 'my_config.py'
  file.write_text('def get_config():\n  pass\n')
  error = error_of(configuration.build, str(file))
  assert str(error) == (
    f'{file}: get_config(method) is not a call: too many positional arguments'
  )


def test_a_program_ends_with_one_line(tmp_path):
  """With --traceback, and of errors of ours, it shows all calls."""
  file = tmp_path / 'my_config.py'
  file.write_text(CONFIG.format(change='iteration=6'))
  command = [sys.executable, '-m', 'experiments.train', f'--config={file}']
  command.append('--print_config')
  for more, lines in (([], 1), (['--traceback'], 5)):
    done = subprocess.run(
      command + more, cwd=configuration.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    found = done.stderr.splitlines()
    assert len(found) == lines if lines == 1 else len(found) > lines
    assert 'iteration' in found[-1]


def test_ctrl_c_ends_with_one_line():
  """The exit code is that of a shell."""
  code = (
    'from experiments.flags import configuration\n'
    'def main(argv): raise KeyboardInterrupt\n'
    'configuration.run(main)\n'
  )
  done = subprocess.run(
    [sys.executable, '-c', code],
    cwd=configuration.ROOT,
    capture_output=True,
    text=True,
  )
  assert (done.returncode, done.stderr) == (130, 'error: interrupted\n')


def test_errors_of_ours_keep_their_traceback(monkeypatch):
  """No file of the user was in it."""
  values = flags.FlagValues()
  monkeypatch.setattr(configuration.flags, 'FLAGS', values)
  for define in ('DEFINE_bool', 'DEFINE_multi_string'):
    own = functools.partial(getattr(flags, define), flag_values=values)
    monkeypatch.setattr(configuration.flags, define, own)
  monkeypatch.setattr(configuration.processes, 'end_all', lambda code: None)

  def start(guarded, flags_parser):
    values(['x'])
    guarded(['x'])

  monkeypatch.setattr(configuration.app, 'run', start)

  def main(argv):
    raise KeyError('ours')

  with pytest.raises(KeyError, match='ours'):
    configuration.run(main)
