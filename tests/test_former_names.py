"""Files of earlier versions are read: classes, fields, digests."""

import dataclasses
import json
import pathlib

import pytest

from configs.methods import grpo
from configs.worlds import bandit
from experiments.flags import configuration
from rl_jax import overrides, serialization
from rl_jax.overrides import add_piece, override
from rl_jax.tasks import base

GOLDEN = pathlib.Path(__file__).parent / 'golden'
# As golden/make_former_names.py wrote them, before modules had their rooms.
FORMER = json.loads((GOLDEN / 'former_names.json').read_text())


@dataclasses.dataclass(frozen=True)
class Inner:
  """The present class of a former name; another name was its field's."""

  share: float = 0.5


@dataclasses.dataclass(frozen=True)
class Outer:
  """It holds a piece, and a tuple of some."""

  inner: Inner = Inner()
  pieces: tuple = ()


@pytest.fixture
def renamed(monkeypatch):
  """Inner was called Within, and its share was a fraction."""
  names = {'Within': 'Inner', ('Inner', 'fraction'): 'share'}
  monkeypatch.setattr(overrides, 'RENAMED', names)


def test_every_class_of_before_is_known():
  """By the last word of the module path that a file has."""
  known = serialization.known_classes()
  names = [path.rpartition('.')[2] for path in FORMER['classes']]
  assert len(names) > 300
  unknown = {overrides.class_today(name, known) for name in names} - {*known}
  assert not unknown


@pytest.mark.parametrize('name', FORMER['configurations'])
def test_digests_of_configurations_are_as_before(name):
  """Golden: results of their runs keep their place in tables."""
  config = configuration.load_config(name, grpo.get_method())
  assert serialization.digest(config) == FORMER['configurations'][name]


@pytest.mark.parametrize('name', FORMER['methods'])
def test_digests_of_methods_are_as_before(name):
  """Golden, as those of the configurations."""
  found = serialization.digest(configuration.load_method(name))
  assert found == FORMER['methods'][name]


def test_files_of_before_have_former_names(renamed):
  """The former names of a class and of its field, in any module."""
  text = json.dumps({'class': 'rl_jax.there.Within', 'fraction': 0.25})
  assert serialization.from_json(text, [Inner]) == Inner(share=0.25)
  again = serialization.to_json(Inner(share=0.25))
  assert json.loads(again)['share'] == 0.25


def test_a_class_of_a_former_name_is_itself(renamed):
  """A user may have a class that is called as one of ours was."""
  cls = dataclasses.make_dataclass('Within', [('fraction', float)], frozen=True)
  text = json.dumps({'class': 'mine.Within', 'fraction': 0.25})
  assert serialization.from_json(text, [Inner, cls]) == cls(0.25)


def test_digests_are_of_former_names(renamed, monkeypatch):
  """So that a rename moves no result to another place."""
  was = dataclasses.make_dataclass(
    'Within', [('fraction', float, 0.5)], frozen=True
  )
  known = serialization.digest(Outer(inner=Inner(share=0.25)))
  assert known == serialization.digest(Outer(inner=was(0.25)))
  monkeypatch.setattr(overrides, 'RENAMED', {})
  assert known != serialization.digest(Outer(inner=Inner(share=0.25)))


def test_set_takes_former_paths(renamed):
  """The former path of a field, and of a piece in a tuple."""
  changed = override(Outer(), 'inner.fraction', '0.25')
  assert changed == Outer(inner=Inner(share=0.25))
  outer = Outer(pieces=(Inner(),))
  assert override(outer, 'pieces.Within.fraction', '0.25') == Outer(
    pieces=(Inner(share=0.25),)
  )
  with pytest.raises(ValueError, match="unknown field in 'inner.fractio'"):
    override(Outer(), 'inner.fractio', '0.25')


def test_pieces_are_built_by_former_names(monkeypatch):
  """PPOClip under another name, as --add has it."""
  names = {'Clipped': 'PPOClip', ('PPOClip', 'low'): 'clip_low'}
  monkeypatch.setattr(overrides, 'RENAMED', names)
  config = bandit.get_config(grpo.get_method())
  added = add_piece(config, 'method.losses', 'Clipped(low=0.125)')
  assert added.method.losses[-1].clip_low == 0.125


@pytest.mark.parametrize('former', overrides.RENAMED, ids=str)
def test_names_of_today_are_there(former):
  """No class or field of a former name remains, and those of today exist."""
  known, today = serialization.known_classes(), overrides.RENAMED[former]
  if isinstance(former, str):
    known = {**vars(base), **known}  # base has what no file names
    assert today in known and former not in known
    return
  fields = {field.name for field in dataclasses.fields(known[former[0]])}
  assert today in fields and former[1] not in fields


def test_fields_that_are_gone_are_read_and_not_set():
  """A file may have one; to set it is an error that says why it is gone."""
  config = bandit.get_config(grpo.get_method())
  recorded = json.loads(serialization.to_json(config))
  recorded['rollout']['episodes'] = 'lockstep'
  classes = serialization.classes_of(config)
  assert serialization.from_json(json.dumps(recorded), classes) == config
  with pytest.raises(ValueError, match='rollout.episodes is gone, as rows of'):
    override(config, 'rollout.episodes', 'slots')
