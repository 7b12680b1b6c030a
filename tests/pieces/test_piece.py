"""The decorator of pieces, and the folders that offer them."""

import jax
import pytest

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import credit, logits, losses, weights
from rl_jax.pieces.piece import piece
from rl_jax.rollouts import wrappers


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
  """Under the name of the folder, without names of helpers."""
  assert losses.PPOClip.__module__ == 'rl_jax.pieces.losses.ppo_clip'
  assert {'GAE', 'LambdaReturn', 'GroupCenter'} <= set(vars(credit))
  assert {'TopK', 'LaggedSupport'} <= set(vars(logits))
  assert {'HintGuided', 'SegmentValues'} <= set(vars(wrappers))
  assert not hasattr(weights, 'Trajectories')
