"""A method is a value: one Method object that lists named pieces."""

from collections.abc import Iterator
import dataclasses
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen

PIECE_TUPLES = ('shaping', 'credit', 'losses', 'weights', 'logits')
LOSS_SLOTS = ('losses', 'weights')  # run with every optimizer step
CREDIT_SLOTS = ('shaping', 'credit', 'group_filter', 'value_target', 'pairs')
PIECE_SLOTS = ('aggregation', 'value_target', 'group_filter', 'pairs')
# The roles that a slot takes; of these methods a piece must have one.
METHODS = {
  'logits': ('__call__',),
  'rollout': ('begin', 'extend', 'policies'),
  'reference': ('renewed',),
}
# Statistics of a value head.
_VALUES = frozenset(
  {'values', 'values_after', 'value_heads', 'value_heads_after'}
)
ROLES = {
  'shaping': ('shaping',),
  'credit': ('credit',),
  'losses': ('policy', 'regularizer', 'value'),
  'weights': ('weight',),
  'aggregation': ('aggregation',),
  'value_target': ('value_target',),
  'group_filter': ('group_filter',),
  'pairs': ('pairs',),
  'selector': ('selector',),
  'logits': ('logits', None),
  'rollout': ('rollout', None),
  'reference': ('reference', None),
}


class Method(struct.PyTreeNode, kw_only=True):
  """The pieces of one reinforcement-learning method.

  shaping: rewards -> rewards ([B] or [B, T]), in order.
  credit: rewards -> advantages, in order; what is left [B] is broadcast.
  losses: terms that are summed; role policy, regularizer or value.
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

  shaping: tuple = ()
  credit: tuple = ()
  losses: tuple = ()
  weights: tuple = ()
  aggregation: Any = None
  value_target: Any = None
  group_filter: Any = None
  pairs: Any = None
  selector: Any = struct.field(pytree_node=False, default=None)
  rollout: Any = struct.field(pytree_node=False, default=None)
  logits: tuple = ()
  reference: Any = struct.field(pytree_node=False, default=Frozen())

  def pieces(self) -> Iterator[tuple[str, Any]]:
    """Yields (path, piece), for example ('credit.0.GroupCenter', piece)."""
    for name in PIECE_TUPLES:
      for i, piece in enumerate(getattr(self, name)):
        yield f'{name}.{i}.{type(piece).__name__}', piece
    for name in PIECE_SLOTS:
      piece = getattr(self, name)
      if piece is not None:
        yield f'{name}.{type(piece).__name__}', piece

  def pieces_of(self, slot: str) -> list[tuple[str, Any]]:
    """(path, piece) of one tuple of pieces, in order."""
    return [item for item in self.pieces() if item[0].split('.')[0] == slot]

  def needs(self, slots: tuple[str, ...] | None = None) -> frozenset[Any]:
    """What the pieces read: names (entropy, values, ...) and statistics.

    Losses always have logp; only pieces of CREDIT_SLOTS declare it.
    slots: only of these; LOSS_SLOTS are those that an update computes.
    """
    return frozenset(
      need
      for path, piece in self.pieces()
      if slots is None or path.split('.')[0] in slots
      for need in getattr(piece, 'needs', ())
    )

  @property
  def reads_values(self) -> bool:
    """Whether a piece needs a value head: a critic, or a reward model."""
    return not self.needs().isdisjoint(_VALUES) or self.reads_action_values

  @property
  def reads_action_values(self) -> bool:
    """Whether a piece reads values of every token of the vocabulary."""
    return any(getattr(need, 'value_heads', False) for need in self.needs())

  @property
  def num_values(self) -> int:
    """Outputs of the value head that are read: the most that a piece asks."""
    pieces = [piece for _, piece in self.pieces()]
    return max([1, *(getattr(piece, 'num_values', 1) for piece in pieces)])

  def policies(self) -> dict[str, Any]:
    """The policies besides the trained one, by name, each with its rule.

    Raises ValueError if two pieces give one name different rules.
    """
    rules = {}
    if 'logp_ref' in self.needs() or getattr(
      self.rollout, 'reads_reference', False
    ):
      rules['reference'] = self.reference
    for path, piece in (*self.pieces(), ('rollout', self.rollout)):
      wanted = {
        name: self.reference
        for need in getattr(piece, 'needs', ())
        for name in getattr(need, 'policies', {})
      }
      wanted |= getattr(piece, 'policies', {})
      for name, rule in wanted.items():
        if rules.setdefault(name, rule) != rule:
          raise ValueError(
            f'method.{path} asks for the policy {name!r} by {rule}, another '
            f'piece by {rules[name]}; one is kept: give both the same rule'
          )
    return rules

  def init_state(self, num_prompts: int) -> dict[str, Any]:
    """The states of stateful pieces, keyed by path."""
    return {
      path: piece.init(num_prompts)
      for path, piece in self.pieces()
      if hasattr(piece, 'init')
    }

  def init_params(self) -> dict[str, Any]:
    """What losses and weights learn by gradient besides the policy, by path."""
    return {
      path: piece.init_params()
      for path, piece in self.pieces()
      if hasattr(piece, 'init_params')
    }

  def resolved(self) -> 'Method':
    """Pieces that share limits with another piece have taken them from it."""
    method = self
    for path, piece in self.pieces():
      if hasattr(piece, 'resolve'):
        method = replace_piece(method, path, piece.resolve(self))
    return method

  def with_special_ids(self, ids: tuple[int, ...]) -> 'Method':
    """Transforms of logits that treat special tokens otherwise know them."""
    own = lambda piece: getattr(piece, 'with_special_ids', lambda _: piece)
    return dataclasses.replace(
      self, logits=tuple(own(piece)(ids) for piece in self.logits)
    )

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
  if not any(loss.role == 'policy' for loss in method.losses):
    raise ValueError('method.losses has no loss of role "policy": add one')
  if method.aggregation is None:
    raise ValueError('method.aggregation is missing: for example TokenMean()')
  for path, piece in method.pieces():
    least = getattr(piece, 'min_group_size', 1)
    if group_size < least:
      raise ValueError(
        f'method.{path} compares the samples of a group and needs '
        f'rollout.group_size >= {least}, got {group_size}'
      )
    needs = getattr(piece, 'needs', ())
    reads = not _VALUES.isdisjoint(needs)
    reads |= any(getattr(need, 'value_heads', False) for need in needs)
    if reads and not has_value_head:
      raise ValueError(
        f'method.{path} needs a value head: set model.value_head=True'
      )
    outputs = getattr(piece, 'num_values', 1)
    if outputs > num_values:
      raise ValueError(
        f'method.{path} reads {outputs} outputs of the value head, the model '
        f'has {num_values}: set model.num_values={outputs}'
      )
    check = getattr(piece, 'check_method', None)
    if check is not None:
      check(method)
  method.policies()
  method.resolved()


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
    reason = hasattr(piece, 'idle') and piece.idle(
      max_response_tokens, vocab_size
    )
    if reason:
      lines.append(f'method.{path}: with {limits}, {reason}')
  return lines


def _check_roles(method: Method) -> None:
  """Raises ValueError for a piece in a slot that is not its own."""
  for slot, roles in ROLES.items():
    value = getattr(method, slot)
    if slot in PIECE_TUPLES and not isinstance(value, tuple):
      raise ValueError(f'method.{slot} = {value!r} is not a tuple of pieces')
    pieces = value if slot in PIECE_TUPLES else (value,)
    for piece in pieces:
      if piece is None and slot not in PIECE_TUPLES:
        continue
      role, name = getattr(piece, 'role', None), type(piece).__name__
      known = slot not in METHODS or any(
        hasattr(piece, name) for name in METHODS[slot]
      )
      if role not in roles or not dataclasses.is_dataclass(piece) or not known:
        slots = [s for s in ROLES if role is not None and role in ROLES[s]]
        hint = f'; its place is method.{slots[0]}' if slots else ''
        raise ValueError(
          f'method.{slot} holds {name}, which is no piece for it{hint}'
        )


def replace_piece(method: Method, path: str, piece: Any) -> Method:
  """Returns a method with the piece at 'credit.0.Name' replaced."""
  name, *rest = path.split('.')
  if name in PIECE_SLOTS:
    return dataclasses.replace(method, **{name: piece})
  pieces = list(getattr(method, name))
  pieces[int(rest[0])] = piece
  return dataclasses.replace(method, **{name: tuple(pieces)})
