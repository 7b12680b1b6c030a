"""The decorator of pieces, and the folders that offer them."""

from typing import ClassVar

import jax
import pytest

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import credit, logits, losses, weights
from rl_jax.pieces.piece import Piece, piece
from rl_jax.pieces.roles import (
  Loss,
  Regularizer,
  Selector,
  Statistic,
  Weight,
  statistic,
)
from rl_jax.rollouts import wrappers
from rl_jax.types import static


@piece
class Example(Weight):
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


def test_what_no_base_declares_is_an_error():
  """The message names the nearest declaration."""
  with pytest.raises(TypeError, match="did you mean 'min_group_size'"):

    @piece
    class Misspelt(Weight):
      min_group_szie = 4

  with pytest.raises(TypeError, match="did you mean 'per_token'"):

    @piece
    class Annotated(Weight):
      per_tokens: ClassVar[bool] = True

  with pytest.raises(TypeError, match="method 'chek'.* did you mean 'check'"):

    @piece
    class Hooked(Weight):
      def chek(self, context):
        """Never called."""

  with pytest.raises(TypeError, match="attribute 'weighs' is not a field"):

    @piece
    class OfAnotherRole(Loss):
      weighs = ('policy',)


def test_private_names_and_fields_are_free():
  """Also fields that replace a declaration."""

  @piece
  class Free(Weight):
    weighs: tuple[str, ...] = static(default=('value',))
    rate: float = 0.5
    _table: ClassVar[tuple[int, ...]] = (1, 2)

    def _halved(self):
      return self.rate / 2

  assert Free()._halved() == 0.25 and Free().weighs == ('value',)
  assert jax.tree.leaves(Free()) == [0.5]


def test_a_field_is_not_given_the_value_of_the_base():
  """`dataclasses` would read an inherited class attribute as its default."""
  with pytest.raises(TypeError, match="field 'components' has the name of"):

    @piece
    class Fallen(Weight):
      components: tuple[str, ...]


def test_statistics_are_checked_as_pieces_are():
  with pytest.raises(TypeError, match="did you mean 'by_place'"):

    @statistic
    class Misplaced(Statistic):
      by_plase = True


def test_a_piece_of_the_former_form_is_shown_the_new_one():
  """Without a base class, and with the former arguments."""
  with pytest.raises(TypeError) as error:

    @piece
    class Former:
      role = 'credit'

      def __call__(self, credit, traj):
        """[B]."""

  for part in (
    "Former of tests.pieces.test_piece: a piece of the role 'credit' derives",
    'from rl_jax.pieces.roles import Credit, CreditContext, CreditOut',
    '  class Former(Credit):\n    def __call__(self, ctx: CreditContext) ->',
    'ctx has credit, traj, state; CreditOut has value, state.',
    '--allow_change',
  ):
    assert part in str(error.value)
  with pytest.raises(TypeError, match='Nameless of .*: Aggregation, Credit, '):

    @piece
    class Nameless:
      """A class without a role."""

  with pytest.raises(TypeError) as error:

    @piece
    class HalfMoved(Regularizer):
      def __call__(self, stats, traj, key):
        """A scalar."""

  assert '__call__(self, stats, traj, key) should take' in str(error.value)
  assert '  class HalfMoved(Regularizer):' in str(error.value)
  with pytest.raises(TypeError, match=r'select\(self, state, count\) should'):

    @piece
    class Lacking(Selector):
      def select(self, state, count):
        """No key."""


def test_defaults_are_those_of_the_base():
  """A piece has every declaration, without a look whether it has one."""
  assert Example().weighs == ('policy',) and Example().min_group_size == 1
  assert Example().init(3) is None and Example().init_params() is None
  assert Example().resolve(None) == Example() and not Example().idle(4, 4)
  assert isinstance(Example(), Piece)


def test_folders_offer_their_pieces():
  """Under the name of the folder, without names of helpers."""
  assert losses.PPOClip.__module__ == 'rl_jax.pieces.losses.ppo_clip'
  assert {'GAE', 'LambdaReturn', 'GroupCenter'} <= set(vars(credit))
  assert {'TopK', 'LaggedSupport'} <= set(vars(logits))
  assert {'HintGuided', 'SegmentValues'} <= set(vars(wrappers))
  assert not hasattr(weights, 'Trajectories')
