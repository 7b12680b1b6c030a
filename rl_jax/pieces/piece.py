"""The base of all pieces, with all that one may declare, and the decorator.

A piece is a frozen dataclass of hyperparameters. Float fields are leaves of its
pytree, so that new values need no new compilation; all others are static. It
derives from the base class of its role (`rl_jax.pieces.roles`), which says how
it is called. `Piece` holds what pieces of all roles may declare; whatever a
piece does not declare has the default that is given here.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import importlib
import inspect
from typing import (
  Any,
  ClassVar,
  NamedTuple,
  Self,
  TypeVar,
  cast,
  dataclass_transform,
)

from flax import struct

from rl_jax import checks
from rl_jax.checks import checked
from rl_jax.types import static

_Piece = TypeVar('_Piece')


class CheckContext(NamedTuple):
  """The facts that a piece may check before the run; None: not known yet.

  A method is checked by itself, then with the task and the configuration of the
  rollout, and its selector and rollout wrapper again with the prompts.
  """

  method: Any = None  # rl_jax.method.Method
  task: Any = None
  rollout: Any = None  # RolloutConfig
  prompts: Any = None  # PromptSet, once they have been read


class Piece:
  """The declarations and hooks of a piece of any role, with their defaults.

  A piece declares by a class attribute, `min_group_size = 2`, by a property,
  where it depends on fields, or by a field.
  """

  # The role as it is written to files and messages; each base class has its
  # own. Code asks `isinstance(piece, Loss)`.
  role: ClassVar[str] = ''
  # Whether the piece learns from recorded responses, which
  # `rollout.recorded_prompts` reads.
  from_data: ClassVar[bool] = False
  # Whether the piece reads the labels of recorded responses.
  labelled: ClassVar[bool] = False

  @property
  def needs(self) -> tuple[Any, ...]:
    """Statistics of the policy that the piece reads.

    They are names (`entropy`, `values`, `logp_ref`, ...) and objects of
    `rl_jax.pieces.statistics`. Losses and weights always have `logp`.
    """
    return ()

  @property
  def reads(self) -> Mapping[str, str]:
    """Keys of `traj.extras`, and what they mean, that something else fills.

    That is the task, the data or a rollout wrapper. Common keys are documented
    in `rl_jax.pieces.row_inputs` and need no declaration.
    """
    return {}

  @property
  def components(self) -> tuple[str, ...]:
    """Components of the reward that the piece reads."""
    return ()

  @property
  def min_group_size(self) -> int:
    """Samples of a prompt that the piece compares, at least."""
    return 1

  @property
  def num_values(self) -> int:
    """Outputs of the value head that the piece reads."""
    return 1

  @property
  def policies(self) -> Mapping[str, Any]:
    """Policies besides the trained one, each name with its `ReferenceRule`."""
    return {}

  @property
  def mismatched(self) -> bool:
    """Returns whether each group has to hold the response to another prompt."""
    return False

  @property
  def offers(self) -> Mapping[str, Any]:
    """Returns what other pieces of the method take over in `resolve`.

    By a name that both know: {'token_clip': {'clip_low': 0.2, ...}}.
    """
    return {}

  def replace(self, **changes: Any) -> Self:
    """The piece with other values of these fields."""
    return dataclasses.replace(cast(Any, self), **changes)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the piece does not fit the run.

    It may be called several times, with more of the context each time.
    """
    del context

  def check_win_rates(
    self, path: str, pairwise: list[str], others: list[str]
  ) -> None:
    """Raises ValueError if the piece cannot read win rates inside a group.

    path: of the piece. pairwise, others: names of the rewards with a weight
    that compare responses of a group, and of those that do not.
    """
    del path, pairwise, others

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why the constants cannot act within these limits, or ''."""
    del max_response_tokens, vocab_size
    return ''

  def resolve(self, method: Any) -> Self:
    """The piece with constants that it takes over from others of the method.

    Raises: ValueError if it needs another piece that is not there.
    """
    del method
    return self

  def init(self, num_prompts: int) -> Any:
    """The first state, a pytree of arrays; None if the piece has no state."""
    del num_prompts
    return None

  def init_params(self) -> Any:
    """Parameters of a loss or weight, trained with the policy; None: none."""
    return None


@dataclass_transform(
  kw_only_default=True,
  frozen_default=True,
  field_specifiers=(static, struct.field),
)
def piece(cls: type[_Piece]) -> type[_Piece]:
  """Class decorator: a frozen dataclass and pytree with checked fields.

  Fields with ranges and choices are written by `checks.ranged` and
  `checks.chosen`; construction raises ValueError for values outside.

  Raises:
    TypeError: the class has no role, or a public name that is neither a field
      nor declared by a base class, or a method with other parameters than the
      base class has.
  """
  if not issubclass(cls, Piece):
    raise TypeError(f'{checks.where(cls)}: {_former(cls)}')
  check_declarations(cls)
  return struct.dataclass(checked(cls), kw_only=True)


def check_declarations(cls: type) -> None:
  """Raises TypeError, saying what to write, if the class breaks the contract.

  Names that begin with an underscore are the business of the class.
  """
  known = {name for base in cls.__mro__[1:] for name in vars(base)}
  own, fields = vars(cls), checks.own_fields(cls)
  checks.check_defaults(cls, known)
  for name in checks.own_names(cls):
    if name not in fields | known:
      raise TypeError(
        f'{checks.where(cls)}: {_unknown(name, own.get(name), known)}'
      )
    checks.check_parameters(cls, name)
  checks.check_parameters(cls, '__call__', _called)


def _form(name: str, base: type) -> str:
  """Returns how a class of that name derives from the base and is called."""
  signature = inspect.signature(base.__call__)
  if 'ctx' not in signature.parameters:
    return f'\n  @piece\n  class {name}({base.__name__}):\n'
  context = signature.parameters['ctx'].annotation
  out = signature.return_annotation
  parts = [('ctx', context)]
  if issubclass(out, tuple):
    parts.append((out.__name__, out))
  fields = '; '.join(f'{x} has {", ".join(t._fields)}' for x, t in parts)
  imports = sorted({base.__name__, *(t.__name__ for _, t in parts)})
  return f"""
  from rl_jax.pieces.piece import piece
  from rl_jax.pieces.roles import {', '.join(imports)}

  @piece
  class {name}({base.__name__}):
    def __call__(self, ctx: {context.__name__}) -> {out.__name__}:

{fields}."""


def _bases() -> dict[str, type]:
  """The base class of each role; they are in rl_jax.pieces.roles."""
  # They derive from the classes of this file, and may not have been imported
  # yet.
  importlib.import_module('rl_jax.pieces.roles')
  found: dict[str, type] = {}
  waiting: list[type[Piece]] = [Piece]
  while waiting:
    for cls in waiting.pop().__subclasses__():
      if vars(cls).get('role'):
        found.setdefault(cls.role, cls)
      waiting.append(cls)
  return found


def _called(cls: type):
  """Returns how the class is called, for an error; '' for what has no role."""
  base = _bases().get(cls.role) if issubclass(cls, Piece) else None
  return '' if base is None else f':\n{_form(cls.__name__, base)}'


def _former(cls: type):
  """The text of an error about a class without a base class of a role."""
  bases = _bases()
  base = bases.get(getattr(cls, 'role', ''))
  if base is None:
    names = ', '.join(sorted(base.__name__ for base in bases.values()))
    return (
      'a piece derives from the base class of its role, in '
      f'rl_jax.pieces.roles: {names}'
    )
  return (
    f'a piece of the role {base.role!r} derives from {base.__name__}:\n'
    f'{_form(cls.__name__, base)}\nA run that was started with the former '
    'class continues with --allow_change.'
  )


def _unknown(name: str, value: Any, known: Iterable[str]):
  """The text of an error about a name that no base class declares."""
  public = sorted(x for x in known if not x.startswith('_'))
  near = checks.nearest(name, public)
  what = 'method' if inspect.isfunction(value) else 'attribute'
  guess = f'did you mean {near!r}? ' if near else ''
  return (
    f'the {what} {name!r} is not a field, and no base class declares it; '
    f'{guess}'
    f'What only this class uses begins with an underscore: _{name}'
  )
