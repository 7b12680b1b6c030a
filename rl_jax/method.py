"""A method is a value: one Method object that lists named pieces."""

from collections.abc import Iterator
import dataclasses
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.pieces.piece import CheckContext, Piece
from rl_jax.pieces.policies import Frozen, ReferenceRule
from rl_jax.pieces.roles import (
  Aggregation,
  Credit,
  GroupFilter,
  LogitTransform,
  Loss,
  Pairs,
  Regularizer,
  RolloutWrapper,
  Selector,
  Shaping,
  Shift,
  Statistic,
  ValueLoss,
  ValueTarget,
  Weight,
  reads_value_heads,
)

PIECE_TUPLES = ('shaping', 'credit', 'losses', 'weights', 'logits')
LOSS_SLOTS = ('losses', 'weights')  # run with every optimizer step
CREDIT_SLOTS = ('shaping', 'credit', 'group_filter', 'value_target', 'pairs')
PIECE_SLOTS = ('aggregation', 'value_target', 'group_filter', 'pairs')
# Statistics of a value head.
_VALUES = frozenset(
  {'values', 'values_after', 'value_heads', 'value_heads_after'}
)
# The base class of what a slot takes.
ROLES = {
  'shaping': Shaping,
  'credit': Credit,
  'losses': Loss,
  'weights': Weight,
  'aggregation': Aggregation,
  'value_target': ValueTarget,
  'group_filter': GroupFilter,
  'pairs': Pairs,
  'selector': Selector,
  'logits': LogitTransform,
  'rollout': RolloutWrapper,
  'reference': ReferenceRule,
}


class Method(struct.PyTreeNode, kw_only=True):
  """The pieces of one reinforcement-learning method.

  shaping: rewards -> rewards ([B] or [B, T]), in order.
  credit: rewards -> advantages, in order; what is left [B] is broadcast.
  losses: terms that are summed; role policy, regularizer or value. Those of
    role shift say where the gradient of the others is taken.
  weights: token weights without gradient; their product multiplies the losses
    of role policy, and the denominators keep the tokens.
  aggregation: how a [B, T] loss becomes a scalar, unless the loss overrides it.
  value_target: shaped rewards -> returns for the value head, or None.
  group_filter: keeps or drops whole groups, or None.
  pairs: shaped rewards -> comparisons inside groups (types.Edges), or None.
  selector: which prompts come next, or None for a shuffled pass.
  rollout: how groups are sampled, or None for G samples of the prompt.
  logits: transforms of the sampling distribution, replayed when scoring.
  reference: how the policy of logp_ref follows the trained one: Frozen,
    CopyEvery, Average or RandomPast of pieces.policies.

  Float fields of pieces are pytree leaves; everything else is static.
  """

  shaping: tuple[Shaping, ...] = ()
  credit: tuple[Credit, ...] = ()
  losses: tuple[Loss, ...] = ()
  weights: tuple[Weight, ...] = ()
  aggregation: Aggregation | None = None
  value_target: ValueTarget | None = None
  group_filter: GroupFilter | None = None
  pairs: Pairs | None = None
  selector: Selector | None = struct.field(pytree_node=False, default=None)
  rollout: RolloutWrapper | None = struct.field(pytree_node=False, default=None)
  logits: tuple[LogitTransform, ...] = ()
  reference: ReferenceRule = struct.field(pytree_node=False, default=Frozen())

  def slot(self, name: str) -> Any:
    """The content of a slot: a tuple of pieces, a piece or None."""
    return getattr(self, name)

  def pieces(self) -> Iterator[tuple[str, Piece]]:
    """Yields (path, piece), for example ('credit.0.GroupCenter', piece)."""
    for name in PIECE_TUPLES:
      for i, piece in enumerate(self.slot(name)):
        yield f'{name}.{i}.{type(piece).__name__}', piece
    for name in PIECE_SLOTS:
      piece = self.slot(name)
      if piece is not None:
        yield f'{name}.{type(piece).__name__}', piece

  def pieces_of(self, slot: str) -> list[tuple[str, Any]]:
    """(path, piece) of one tuple of pieces, in order."""
    return [item for item in self.pieces() if item[0].split('.')[0] == slot]

  def needs(self, slots: tuple[str, ...] | None = None) -> frozenset[Any]:
    """The names (entropy, values, ...) and statistics that the pieces read.

    Losses always have logp; only pieces of CREDIT_SLOTS declare it.
    slots: only of these; LOSS_SLOTS are those that an update computes.
    """
    return frozenset(
      need
      for path, piece in self.pieces()
      if slots is None or path.split('.')[0] in slots
      for need in piece.needs
    )

  @property
  def shifts(self) -> bool:
    """Returns whether gradients are taken at other parameters, see `Shift`."""
    return any(isinstance(loss, Shift) for loss in self.losses)

  @property
  def reads_values(self) -> bool:
    """Returns whether a piece needs a value head: a critic, or a reward
    model.
    """
    return not self.needs().isdisjoint(_VALUES) or self.reads_action_values

  @property
  def reads_action_values(self) -> bool:
    """Returns whether a piece reads values of every token of the vocabulary."""
    return reads_value_heads(self.needs())

  @property
  def num_values(self) -> int:
    """Outputs of the value head that are read: the most that a piece asks."""
    return max([1, *(piece.num_values for _, piece in self.pieces())])

  @property
  def wrapper(self) -> RolloutWrapper:
    """Returns how groups are sampled: `rollout`, or a wrapper that does
    nothing.
    """
    return RolloutWrapper() if self.rollout is None else self.rollout

  def policies(self) -> dict[str, Any]:
    """The policies besides the trained one, by name, each with its rule.

    Raises ValueError if two pieces give one name different rules.
    """
    rules = {}
    if 'logp_ref' in self.needs() or self.wrapper.reads_reference:
      rules['reference'] = self.reference
    for path, piece in (*self.pieces(), ('rollout', self.wrapper)):
      wanted = {
        name: self.reference
        for need in piece.needs
        if isinstance(need, Statistic)
        for name in need.policies
      }
      wanted |= piece.policies
      for name, rule in wanted.items():
        if rules.setdefault(name, rule) != rule:
          raise ValueError(
            f'method.{path} asks for the policy {name!r} by {rule}, another '
            f'piece by {rules[name]}; one is kept: give both the same rule'
          )
    return rules

  def init_state(self, num_prompts: int) -> dict[str, Any]:
    """The states of stateful pieces, keyed by path."""
    states = {path: piece.init(num_prompts) for path, piece in self.pieces()}
    return {path: x for path, x in states.items() if x is not None}

  def init_params(self) -> dict[str, Any]:
    """Parameters that losses and weights learn besides the policy, by path."""
    params = {path: piece.init_params() for path, piece in self.pieces()}
    return {path: x for path, x in params.items() if x is not None}

  def resolved(self) -> 'Method':
    """Pieces that share limits with another piece have taken them from it."""
    method = self
    for path, piece in self.pieces():
      method = replace_piece(method, path, piece.resolve(self))
    return method

  def with_special_ids(self, ids: tuple[int, ...]) -> 'Method':
    """Transforms of logits that treat special tokens otherwise know them."""
    logits = tuple(piece.with_special_ids(ids) for piece in self.logits)
    return dataclasses.replace(self, logits=logits)

  def as_arrays(self) -> 'Method':
    """Python floats become strong float32 leaves: new values, same program."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), self.resolved())


def validate(
  method: Method, *, group_size: int, has_value_head: bool, num_values: int = 1
) -> None:
  """Raises ValueError, saying what to change, if the pieces do not fit.

  Checks what no single piece can see: the group size, the value heads, that
  there is something to minimise, and limits that two pieces must share.
  """
  _check_roles(method)
  others = (Regularizer, ValueLoss, Shift)
  if all(isinstance(loss, others) for loss in method.losses):
    raise ValueError('method.losses has no loss of role "policy": add one')
  if method.aggregation is None:
    raise ValueError('method.aggregation is missing: for example TokenMean()')
  for path, piece in method.pieces():
    if group_size < piece.min_group_size:
      raise ValueError(
        f'method.{path} compares the samples of a group and needs '
        f'rollout.group_size >= {piece.min_group_size}, got {group_size}'
      )
    reads = not _VALUES.isdisjoint(piece.needs) or reads_value_heads(
      piece.needs
    )
    if reads and not has_value_head:
      raise ValueError(
        f'method.{path} needs a value head: set model.value_head=True'
      )
    if piece.num_values > num_values:
      raise ValueError(
        f'method.{path} reads {piece.num_values} outputs of the value head, '
        f'the model has {num_values}: set model.num_values={piece.num_values}'
      )
    piece.check(CheckContext(method=method))
  method.policies()
  method.resolved()


def check_run(method: Method, task: Any, rollout: Any) -> None:
  """Raises ValueError if a piece does not fit the task or the rollout."""
  context = CheckContext(method=method, task=task, rollout=rollout)
  for piece in (method.wrapper, *(piece for _, piece in method.pieces())):
    piece.check(context)


def idle_pieces(
  method: Method, *, max_response_tokens: int, vocab_size: int
) -> list[str]:
  """A line for each piece whose constants cannot act within these limits."""
  limits = (
    f'rollout.max_response_tokens = {max_response_tokens} and {vocab_size} '
    'tokens in the vocabulary'
  )
  lines = []
  for path, piece in method.resolved().pieces():
    if reason := piece.idle(max_response_tokens, vocab_size):
      lines.append(f'method.{path}: with {limits}, {reason}')
  return lines


def _check_roles(method: Method) -> None:
  """Raises ValueError for a piece in a slot that is not its own."""
  for slot, base in ROLES.items():
    value = method.slot(slot)
    if slot in PIECE_TUPLES and not isinstance(value, tuple):
      raise ValueError(f'method.{slot} = {value!r} is not a tuple of pieces')
    pieces = value if slot in PIECE_TUPLES else (value,)
    for piece in pieces:
      if piece is None and slot not in PIECE_TUPLES:
        continue
      if not isinstance(piece, base) or not dataclasses.is_dataclass(piece):
        places = [s for s, role in ROLES.items() if isinstance(piece, role)]
        hint = f'; its place is method.{places[0]}' if places else ''
        if callable(piece) and not isinstance(piece, Piece):
          hint = f': write `class {type(piece).__name__}({base.__name__}):`'
        elif not dataclasses.is_dataclass(piece):
          hint = ': write @piece above the class'
        raise ValueError(
          f'method.{slot} holds {type(piece).__name__}, which is not a '
          f'piece for it{hint}'
        )


def replace_piece(method: Method, path: str, piece: Any) -> Method:
  """Returns a method with the piece at 'credit.0.Name' replaced."""
  name, *rest = path.split('.')
  if name in PIECE_SLOTS:
    changed = piece
  else:
    pieces = list(method.slot(name))
    pieces[int(rest[0])] = piece
    changed = tuple(pieces)
  changes: dict[str, Any] = {name: changed}
  return dataclasses.replace(method, **changes)
