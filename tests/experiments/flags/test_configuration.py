"""Texts of the command line."""

import pytest

from experiments.flags import configuration, fields
from rl_jax import serialization


@pytest.mark.parametrize(
  'text, expected',
  [
    (r'\n', '\n'),
    (r'\n\nQ:', '\n\nQ:'),
    ('é', 'é'),
    ('日本\\n🙂', '日本\n🙂'),
    (r'\u00e9\\', 'é\\'),
  ],
)
def test_escapes_are_read_and_other_characters_kept(text, expected):
  """Text of any language is kept: a stop text must be what was typed."""
  assert configuration.unescaped(text) == expected


def test_an_escape_that_is_none_is_named():
  with pytest.raises(ValueError, match='at end of string'):
    configuration.unescaped('a\\')


@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('--workdir=~/runs/a', '--workdir=HOME/runs/a'),
    ('--stop=~', '--stop=~'),
    ('--set=model.path=~/model', '--set=model.path=HOME/model'),
    ('--workdirs=~/a,~/b', '--workdirs=HOME/a,HOME/b'),
    ('--workdir=a~/b', '--workdir=a~/b'),
    ('--workdir=~user/b', '--workdir=~user/b'),
    ('--question=x ~/ y', '--question=x ~/ y'),
  ],
)
def test_paths_at_home(monkeypatch, text, expected):
  """Shells leave a ~ after an = as it is; no folder is named so."""
  monkeypatch.setenv('HOME', 'HOME')
  assert configuration.at_home(text) == expected


def test_an_error_without_a_text_is_named(capsys):
  """MemoryError, for example, has no text."""
  configuration.say(MemoryError())
  assert capsys.readouterr().err == 'error: MemoryError\n'


def test_the_baseline_of_a_configuration_in_json(tmp_path):
  """It does not say what its method is called: that of the default one."""
  path = tmp_path / 'run.json'
  path.write_text(serialization.to_json(configuration.build('bandit')))
  found = configuration.build(
    str(path), sets=['diagnostics.influence_every=10']
  )
  name = configuration.baseline_of(configuration.DEFAULT_METHOD)
  assert found.diagnostics.baseline == configuration.load_method(name)


def test_a_field_has_one_value():
  """Two are an error, the same text twice is none."""
  sets = ['seed=1', 'iterations=2', 'seed=1']
  assert fields.once(sets) == sets
  with pytest.raises(ValueError, match='--set=seed=... has two values'):
    fields.once(['seed=1', 'seed=2'])
