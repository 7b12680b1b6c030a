"""Texts of the command line."""

import pytest

from experiments.flags import configuration


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
  """Of any language: a stop text must be what was typed."""
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
  """Shells leave a ~ behind an = as it is; no folder is named so."""
  monkeypatch.setenv('HOME', 'HOME')
  assert configuration.at_home(text) == expected


def test_an_error_without_a_text_is_named(capsys):
  """As MemoryError has none."""
  configuration.say(MemoryError())
  assert capsys.readouterr().err == 'error: MemoryError\n'
