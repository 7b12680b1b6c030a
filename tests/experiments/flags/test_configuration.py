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
