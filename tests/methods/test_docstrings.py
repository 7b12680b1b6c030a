"""Docstrings of configs/methods: their contract, constants, and the table.

`Pieces:` lists every constant of a method. The numbers are those of the papers
and releases that the docstrings name: a change of a default in a piece changes
what a method's name means, and is found here.
"""

import re

import pytest

from experiments.flags import configuration
from experiments.tables import all_methods, methods

NAMES = configuration.names(methods.PACKAGE)


@pytest.mark.parametrize('name', NAMES)
def test_docstring_keeps_the_contract(name):
  """All parts are there, and the constants are those of the method."""
  missing = methods.problems(name)
  assert not missing, (
    f'the docstring of configs/methods/{name}.py breaks the contract of '
    'CONTRIBUTING.md:\n\n' + '\n\n'.join(missing)
  )


def test_table_is_fresh():
  """configs/methods/README.md is what docstrings and results say."""
  path = configuration.ROOT / all_methods.FILE
  found = path.read_text() if path.exists() else ''
  assert found == all_methods.page(), (
    f'{all_methods.FILE} is not up to date; run: {all_methods.COMMAND}'
  )


def test_table_names_every_method():
  """One row each, with pieces in the order of the method."""
  rows = [
    row for row in all_methods.page().split('\n') if row.startswith('| [')
  ]
  assert len(rows) == len(NAMES)
  (dapo,) = (row for row in rows if row.startswith('| [dapo](dapo.py) |'))
  assert 'Yu et al.' in dapo
  pieces = re.findall(r'\[(\w+)\]\((\.\./\.\./rl_jax/[\w/]+\.py)\)', dapo)
  assert [name for name, _ in pieces] == [
    *('OverlongPenalty', 'GroupCenter', 'GroupScale', 'PPOClip', 'TokenMean'),
    'ZeroVariance',
  ]
  folder = (configuration.ROOT / all_methods.FILE).parent
  for name, path in pieces:
    assert f'class {name}(' in (folder / path).read_text()


def edited(monkeypatch, old, new):
  """The parts that DAPO's docstring lacks after a change of its text."""
  text = methods.docstring('dapo')
  assert old in text
  monkeypatch.setattr(methods, 'docstring', lambda _: text.replace(old, new))
  return '\n'.join(methods.problems('dapo'))


@pytest.mark.parametrize(
  'old, new, message',
  [
    ('Evidence:', 'Proof:', 'Evidence: verified in code (verl recipe dapo).'),
    ('Paper:', 'Text:', 'Paper: Yu et al., "DAPO'),
    ('Command:', 'Run:', 'Command: python -m experiments.train'),
    ('--method=dapo', '--method=grpo', '--method=dapo'),
    ('verified in code', 'seen', 'verified in code, read in paper'),
    ('DAPO: clip-higher', 'clip-higher', 'the first line must be NAME: what'),
    ('clip_high=0.28', 'clip_high=0.3', 'clip_high=0.28'),
    ('Pieces:', 'Parts:', 'Pieces: OverlongPenalty(max_tokens=20480.0'),
  ],
)
def test_the_message_says_what_to_write(monkeypatch, old, new, message):
  """Each missing part comes with an example, the pieces with their text."""
  assert message in edited(monkeypatch, old, new)
