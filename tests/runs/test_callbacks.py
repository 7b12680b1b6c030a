"""Own code in a run."""

import pytest

from rl_jax.runs.callbacks import Callback, Callbacks, load


class Half:
  """An object with one of the functions."""

  def on_iteration(self, step, row):
    return step > 1


def test_only_true_ends_a_run():
  """Any object is a callback; missing functions are passed over."""
  callbacks = Callbacks([Callback(), Half()])
  assert not callbacks.call('on_iteration', 1, {})
  assert callbacks.call('on_iteration', 2, {})
  assert not callbacks.call('on_end', 2, {})
  assert not Callbacks().call('on_start', None)


def test_a_misspelt_function_is_named():
  """It would never be called."""

  class Wrong:
    def on_iterations(self, step, row):
      pass

  with pytest.raises(ValueError, match="Wrong: .* mean 'on_iteration'"):
    Callbacks([Wrong()])
  with pytest.raises(ValueError, match='object: unknown function'):
    Callbacks([object()])


def test_callbacks_are_loaded_by_name(tmp_path):
  """From a file or a module, made without arguments."""
  path = tmp_path / 'mine.py'
  path.write_text('class Mine:\n  def on_end(self, step, row):\n    pass\n')
  assert type(load(f'{path}:Mine')).__name__ == 'Mine'
  assert isinstance(load('rl_jax.runs.callbacks:Callback'), Callback)
  broken = tmp_path / 'broken.py'
  broken.write_text('import no_such_thing\n')
  for text, message in {
    f'{broken}:Mine': 'broken.py cannot be imported: .* .*broken.py:1',
    str(path): 'expected PATH.py:CLASS',
    f'{path}:Mein': "Did you mean 'Mine'\\? Known: Mine$",
    'no_such_module:X': 'no_such_module cannot be imported',
  }.items():
    with pytest.raises(ValueError, match=message):
      load(text)
  with pytest.raises(FileNotFoundError, match='nowhere.py: no such file'):
    load('nowhere.py:X')
