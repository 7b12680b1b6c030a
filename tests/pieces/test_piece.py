"""The decorator of pieces, and how their folders find them."""

import sys

import jax
import pytest

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import credit, logits, losses, weights
from rl_jax.pieces.piece import piece, pieces_of
from rl_jax.rollouts import wrappers

FILE = """
from rl_jax.pieces.piece import piece
from rl_jax.pieces.losses import PPOClip

@piece
class {name}:
  low: float = 0.0

@piece
class _Hidden:
  pass
"""


@piece
class Example:
  low: float = ranged(0.2, 0.0, 1.0)
  count: int = ranged(3, 1, static=True)
  form: str = chosen('token', ('token', 'row'))


def test_pieces_are_checked_pytrees():
  """Floats are leaves, the rest is static; tracers pass the checks."""
  assert jax.tree.leaves(Example()) == [0.2]
  with pytest.raises(ValueError, match='Example.low = 2.0'):
    Example(low=2.0)
  with pytest.raises(ValueError, match='Example.form'):
    Example().replace(form='word')
  jax.jit(lambda p: p.low * p.count)(Example())


def test_folders_offer_their_pieces():
  """Under the name of the folder, without being listed anywhere."""
  assert losses.PPOClip.__module__ == 'rl_jax.pieces.losses.ppo_clip'
  assert {'GAE', 'LambdaReturn', 'GroupCenter'} <= set(vars(credit))
  assert {'TopK', 'LaggedSupport'} <= set(vars(logits))
  assert {'HintGuided', 'SegmentValues'} <= set(vars(wrappers))
  assert not hasattr(weights, 'Trajectories')


@pytest.fixture
def package(tmp_path, monkeypatch):
  """An empty package, importable as `own_pieces`."""
  folder = tmp_path / 'own_pieces'
  folder.mkdir()
  (folder / '__init__.py').write_text('')
  monkeypatch.syspath_prepend(tmp_path)
  yield folder
  for name in [n for n in sys.modules if n.startswith('own_pieces')]:
    del sys.modules[name]


def test_only_public_classes_of_the_files_are_found(package):
  """Neither imported pieces nor private ones."""
  (package / 'one.py').write_text(FILE.format(name='One'))
  assert list(pieces_of('own_pieces', [str(package)])) == ['One']


def test_two_pieces_of_one_name_are_an_error(package):
  """The message names both files."""
  for name in ('one', 'two'):
    (package / f'{name}.py').write_text(FILE.format(name='Same'))
  with pytest.raises(ValueError, match='one and own_pieces.two both define'):
    pieces_of('own_pieces', [str(package)])
