"""Calls of pieces: an error says what the role wants, and where.

What a piece returns is compared with what its role declares while the program
is traced, so that a mistake is one sentence with the file and the line of the
class, and costs nothing at run time.
"""

from collections.abc import Mapping
import dataclasses
import difflib
import re
import traceback
from typing import Any, NoReturn

import jax
import numpy as np

from rl_jax.pieces.piece import Piece
from rl_jax.pieces.roles import (
  Aggregation,
  AggregationContext,
  CreditContext,
  CreditOut,
  GroupFilter,
  LogitContext,
  LogitTransform,
  LossContext,
  LossOut,
  Pairs,
  ValueTarget,
  Weight,
)
from rl_jax.pieces.row_keys import KEYS
from rl_jax.types import Array, Edges, Trajectories

# Role -> shapes that the value may have; any number stands for H.
_CREDIT_SHAPES = {GroupFilter: ('N',), ValueTarget: ('B', 'BT', 'BTH')}
# Field of Trajectories that may be None -> what fills it.
_FILLED = {
  'logp_old_BT': "every update, and for credit a piece with needs = ('logp',)",
  'logp_ref_BT': "a piece that lists 'logp_ref' in `needs`",
  'entropy_BT': "a piece of credit that lists 'entropy' in `needs`",
  'values_BT': "a piece that lists 'values' in `needs`",
  'values_BTH': "a piece that lists 'value_heads' in `needs`",
  'advantages_BT': 'the pieces of method.credit, which are called earlier',
  'returns_BT': 'method.value_target',
  'returns_BTH': 'method.value_target, with several outputs',
  'edges': 'method.pairs',
  'turn_BT': 'a task with episodes',
  'turns': 'a task with episodes',
  'context_BT': 'a task whose episodes rewrite their context',
}
# Errors of Python and JAX that say little about a piece by themselves.
_PLAIN = (KeyError, AttributeError, TypeError, IndexError)
_UNPACKED = ('too many values to unpack', 'not enough values to unpack')
_BROADCAST = ('Incompatible shapes', 'Operands could not be broadcast')


class PieceError(ValueError):
  """A piece failed, or returned what its role does not allow."""


def loss(path: str, piece: Any, ctx: LossContext) -> LossOut:
  """Calls a loss or weight, and checks what it returns.

  Args:
    path: of the piece in its method, for messages.

  Raises: PieceError if it fails, or returns something else than LossOut with a
    value [B, T] (of a loss also a scalar), metrics that are scalars or [B, T],
    and a state of the form of `init`.
  """
  out = _called(path, piece, ctx)
  _check_type(path, piece, out, LossOut, 'value, metrics')
  shapes = ('BT',) if isinstance(piece, Weight) else ('BT', '')
  _check_shape(path, piece, 'a value', out.value, shapes, ctx.traj)
  if not isinstance(out.metrics, Mapping):
    kind = _kind(out.metrics)
    _refuse(
      path,
      piece,
      f'returns metrics of the type {kind}: they should be a dict of names and '
      'arrays, or {}',
    )
  for name, metric in out.metrics.items():
    what = f'the metric {name!r}'
    if np.ndim(metric):
      _check_shape(path, piece, what, metric, ('BT', ''), ctx.traj)
  _check_state(path, piece, ctx.state, out.state)
  return out


def credit(path: str, piece: Any, ctx: CreditContext) -> CreditOut:
  """Calls a piece that runs once a rollout, and checks what it returns.

  Raises: PieceError as `loss`; the value is [B] or [B, T], of a group filter
    [N], of a value target also [B, T, H], of pairs Edges.
  """
  out = _called(path, piece, ctx)
  _check_type(path, piece, out, CreditOut, 'value')
  if isinstance(piece, Pairs):
    if not isinstance(out.value, Edges):
      kind = type(out.value).__name__
      _refuse(path, piece, f'returns a value of the type {kind}, not Edges')
  else:
    shapes = next(
      (x for role, x in _CREDIT_SHAPES.items() if isinstance(piece, role)),
      ('B', 'BT') if ctx.credit.ndim == 1 else ('BT',),
    )
    _check_shape(path, piece, 'a value', out.value, shapes, ctx.traj)
  _check_state(path, piece, ctx.state, out.state)
  return out


def aggregation(
  path: str, piece: Aggregation, ctx: AggregationContext, traj: Trajectories
) -> Array:
  """Weights [B, T]. Raises: PieceError as `loss`."""
  weight_BT = _called(path, piece, ctx)
  _check_shape(path, piece, 'a result', weight_BT, ('BT',), traj)
  return weight_BT


def logits(piece: LogitTransform, ctx: LogitContext) -> Array:
  """Logits [R, V]. Raises: PieceError as `loss`."""
  path = f'logits.{type(piece).__name__}'
  logits_RV = _called(path, piece, ctx)
  wanted = ctx.logits_RV.shape
  if _shape_of(path, piece, 'a result', logits_RV) != wanted:
    _refuse(
      path,
      piece,
      f'returns {_shape_text(logits_RV.shape)}: it should return logits [R, V] '
      f'= {_shape_text(wanted)}',
    )
  return logits_RV


def place(piece: Any) -> str:
  """FILE:LINE of the call of the class of a piece."""
  code = type(piece).__call__.__code__
  return f'{code.co_filename}:{code.co_firstlineno}'


def _called(path: str, piece: Any, ctx: Any):
  """The result of the piece; plain errors say what is meant."""
  try:
    return piece(ctx)
  except _PLAIN as error:
    _explain(path, piece, ctx, error)
  except ValueError as error:
    if not str(error).startswith((*_UNPACKED, *_BROADCAST)):
      raise  # the piece says by itself what is wrong
    _explain(path, piece, ctx, error)


def _parts(piece: Any):
  """Pieces that a piece is made of, as the score and the link of PairLoss."""
  values = (getattr(piece, x.name) for x in dataclasses.fields(piece))
  return [x for x in values if isinstance(x, Piece)]


def _explain(path: str, piece: Any, ctx: Any, error: Any) -> NoReturn:
  """Raises PieceError with the last place in a file of the piece or a part."""
  files = {place(x).rpartition(':')[0] for x in (piece, *_parts(piece))}
  frames = traceback.extract_tb(error.__traceback__)
  own = [x for x in frames if x.filename in files]
  where = f'{own[-1].filename}:{own[-1].lineno}' if own else place(piece)
  source = own[-1].line or '' if own else ''
  text = str(error).partition('\n')[0].removesuffix('.')
  hint = _hint(error, piece, ctx, source)
  hint = f'.{hint}' if hint else ''
  raise PieceError(
    f'method.{path} fails: {type(error).__name__}: {text}{hint} ({where})'
  ) from error


def _hint(error: Any, piece: Any, ctx: Any, source: str):
  """Returns what was meant, as ' A sentence.', or ''."""
  traj = getattr(ctx, 'traj', None)  # contexts of logits have none
  if isinstance(error, KeyError):
    return _hint_of_key(error.args[0], ctx, traj)
  if isinstance(error, AttributeError):
    return _hint_of_name(error)
  if isinstance(error, jax.errors.ConcretizationTypeError | _TRACED):
    return (
      ' Arrays and float fields have no values while the program is traced: '
      'write jnp.where(condition, a, b) for `if`, jnp for numpy; a field that '
      'decides which code runs is static()'
    )
  text = str(error)
  if text.startswith(_UNPACKED) and re.search(r'=\s*ctx\b', source):
    return f' ctx is a record: read ctx.{", ctx.".join(type(ctx)._fields)}'
  if 'broadcast' in text and traj is not None:
    return ' A number for each row meets tokens as x_B[:, None]'
  missing = re.search(r"missing .* argument: '(\w+)'", text)
  if missing and missing[1] == 'metrics':
    return ' Write LossOut(value, {}) where there are no metrics'
  if 'NoneType' in text:
    return _hint_of_none(ctx, traj, source)
  return ''


_TRACED = (
  jax.errors.TracerBoolConversionError
  | jax.errors.TracerArrayConversionError
  | jax.errors.TracerIntegerConversionError
)


def _hint_of_key(key: Any, ctx: Any, traj: Any):
  """Returns where a statistic or a key of extras is to be declared."""
  if traj is None or not isinstance(key, str):
    return ''
  if key in traj.extras:
    return f' It is in ctx.traj.extras[{key!r}]'
  is_statistic = key in ('entropy', 'values') and isinstance(ctx, LossContext)
  if not is_statistic and f'{key}_BT' in traj.__dataclass_fields__:
    return f' It is ctx.traj.{key}_BT{_filled(f"{key}_BT")}'
  if isinstance(ctx, LossContext) and not re.search(r'_[A-Z]+\d?$', key):
    known = ', '.join(sorted(ctx.stats))
    return (
      f' ctx.stats has {known}; another statistic is there if the piece lists '
      f'it: needs = ({key!r},)'
    )
  near = difflib.get_close_matches(key, [*KEYS, *traj.extras], n=1)
  guess = f' Did you mean {near[0]!r}?' if near and near[0] != key else ''
  return (
    f'{guess} Nothing has filled this key of ctx.traj.extras: the task returns '
    f'it as a component, or the piece declares it in `reads`, and '
    'row_inputs.read says what is missing'
  )


def _hint_of_name(error: Any):
  """The nearest name of a record."""
  if not isinstance(error.obj, (Trajectories, tuple)):
    return ''
  if isinstance(error.obj, CreditContext) and error.name == 'stats':
    return (
      ' Credit runs before the update: list what it reads in `needs`, and find '
      'it in traj.logp_old_BT, entropy_BT, values_BT or traj.extras'
    )
  names = [x for x in dir(error.obj) if not x.startswith('_')]
  near = difflib.get_close_matches(error.name or '', names, n=1)
  return f' Did you mean {near[0]!r}?' if near else ''


def _hint_of_none(ctx: Any, traj: Any, source: str):
  """Returns which of the fields in this line of the source are None, and
  why.
  """
  found = [
    f' ctx.{name} is None: the piece has no method {init}'
    for name, init in (('state', 'init'), ('params', 'init_params'))
    if f'ctx.{name}' in source and getattr(ctx, name, None) is None
  ]
  names = dict.fromkeys(re.findall(r'\b\w+\b', source))
  found += [
    f' traj.{name} is None{_filled(name)}'
    for name in names
    if traj is not None and name in _FILLED and getattr(traj, name) is None
  ]
  return ';'.join(found)


def _filled(name: str):
  return f'; it is filled by {_FILLED[name]}' if name in _FILLED else ''


def _check_type(path: str, piece: Any, out: Any, wanted: type, fields: str):
  """Raises PieceError unless the result is of the type of its role."""
  if isinstance(out, wanted):
    return
  name, found = wanted.__name__, type(out).__name__
  end = ', and it has no `return`' if out is None else ''
  _refuse(
    path,
    piece,
    f'returns {found}{end}: it should return {name}({fields}), and '
    f'{name}({fields}, state) if it has a state',
  )


def _check_shape(
  path: str,
  piece: Any,
  what: str,
  value: Any,
  shapes: tuple[str, ...],
  traj: Any,
):
  """Raises PieceError unless the array has one of these shapes of letters."""
  B, T = traj.mask_BT.shape
  sizes = {'B': B, 'T': T, 'N': traj.num_prompts}
  found = _shape_of(path, piece, what, value)
  for letters in shapes:
    if len(letters) == len(found) and all(
      sizes.get(x, n) == n for x, n in zip(letters, found, strict=True)
    ):
      return
  wanted = ' or '.join(
    f'[{", ".join(x)}] = {_shape_text([sizes.get(y, y) for y in x])}'
    if x
    else 'a scalar'
    for x in shapes
  )
  _refuse(
    path,
    piece,
    f'returns {what} of shape {_shape_text(found)}: it should be {wanted}'
    f'{_hint_of_shape(found, shapes, traj)}',
  )


def _hint_of_shape(found: tuple[int, ...], shapes: tuple[str, ...], traj: Any):
  """Returns how arrays of frequent wrong shapes become right ones."""
  N, G, B = traj.num_prompts, traj.group_size, traj.mask_BT.shape[0]
  if found == (N, G) and 'B' in shapes:
    return '; x_NG.reshape(-1) has a number for each row'
  if found == (B,) and shapes[0] == 'BT':
    return '; x_B[:, None] * traj.mask_BT has a number for each token'
  if found == (B,) and shapes == ('N',):
    return '; by_group(x_B, traj.group_size).max(axis=1) has one for each group'
  return ''


def _shape_of(path: str, piece: Any, what: str, value: Any):
  """Its shape. Raises PieceError for what is not an array."""
  if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
    kind = type(value).__name__
    _refuse(path, piece, f'returns {what} of the type {kind}, not an array')
  return tuple(value.shape)


def _kind(value: Any) -> str:
  """The name of a type; all arrays are called so, traced or not."""
  return 'array' if isinstance(value, jax.Array) else type(value).__name__


def _shape_text(shape: Any):
  return f'[{", ".join(map(str, shape))}]'


def _check_state(path: str, piece: Any, before: Any, after: Any):
  """Raises PieceError if the next state has another form than the last one."""
  if after is None:
    return
  if before is None:
    _refuse(
      path, piece, 'returns a state, but has no method init that begins it'
    )
  one, two = (jax.tree.map(np.shape, x) for x in (before, after))
  same = jax.tree.structure(before) == jax.tree.structure(after)
  if not same or one != two:
    _refuse(
      path,
      piece,
      f'returns a state of the form {two}: it should keep that of init, {one}',
    )


def _refuse(path: str, piece: Any, text: str) -> NoReturn:
  raise PieceError(f'method.{path} {text} ({place(piece)})')
