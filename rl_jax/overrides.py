"""Strict changes of a configuration from the command line.

`override` changes one field by its dotted path; pieces in a tuple are named by
class (`method.weights.ClipCovDrop.fraction`) or by index. Values are literals
or restricted constructor calls of pieces: nothing is evaluated. Pieces are
those of this library and of the modules that the user has named.
"""

import ast
from collections.abc import Iterable
import dataclasses
import difflib
import importlib
import re
import types
import typing
from typing import Any

from rl_jax import user_modules
from rl_jax.former_names import REMOVED, RENAMED

# Where --add and --set look for the classes of pieces.
PIECE_MODULES = (
  'rl_jax.pieces.aggregation',
  'rl_jax.pieces.credit',
  'rl_jax.pieces.shaping',
  'rl_jax.pieces.losses',
  'rl_jax.pieces.weights',
  'rl_jax.pieces.regularizers',
  'rl_jax.pieces.selection',
  'rl_jax.pieces.logits',
  'rl_jax.pieces.policies',
  'rl_jax.pieces.preferences',
  'rl_jax.models.judge_source',
  'rl_jax.models.partner_source',
  'rl_jax.models.reward_source',
  'rl_jax.decoding.drafts.settings',
  'rl_jax.episodes.turns',
  'rl_jax.rollouts.wrappers',
  'rl_jax.tasks',
  'rl_jax.worlds',
)
# Names of fields in other libraries (TRL, verl, OpenRLHF) -> ours.
FOREIGN = {
  'adam_beta1': 'optimizer.b1',
  'adam_beta2': 'optimizer.b2',
  'adam_epsilon': 'optimizer.eps',
  'beta': 'method.losses.KLPenalty.coef',
  'epsilon': 'method.losses.PPOClip.clip_low',
  'epsilon_high': 'method.losses.PPOClip.clip_high',
  'eval_steps': 'evaluation.every',
  'gradient_accumulation_steps': 'update.microbatch_prompts',
  'lora_r': 'model.lora_rank',
  'lr': 'optimizer.learning_rate',
  'lr_scheduler_type': 'optimizer.schedule',
  'max_completion_length': 'rollout.max_response_tokens',
  'max_grad_norm': 'optimizer.clip_norm',
  'max_new_tokens': 'rollout.max_response_tokens',
  'max_prompt_length': 'rollout.max_prompt_tokens',
  'max_response_length': 'rollout.max_response_tokens',
  'max_steps': 'iterations',
  'model_name_or_path': 'model.path',
  'num_generations': 'rollout.group_size',
  'num_iterations': 'update.epochs',
  'per_device_train_batch_size': 'rollout.num_prompts',
  'ppo_epochs': 'update.epochs',
  'ppo_mini_batch_size': 'update.minibatch_prompts',
  'report_to': 'tracking.trackers',
  'run_name': 'tracking.name',
  'save_steps': 'checkpoint.every',
  'steps': 'iterations',
  'target_modules': 'model.lora_targets',
  'temperature': 'rollout.temperature',
  'total_steps': 'iterations',
  'train_batch_size': 'rollout.num_prompts',
}
# Of the parser: {[]: 1} is a TypeError, deep nesting one of the last two.
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
# Where the other classes of a configuration are found.
SECTION_MODULES = (
  'rl_jax.config',
  'rl_jax.method',
  'rl_jax.models.rope',
  'rl_jax.models.transformer',
  'rl_jax.verification.sandbox.python_calls',
)


def override(config: Any, path: str, text: str) -> Any:
  """Returns config with the field at the dotted path set to a literal.

  Raises ValueError naming the nearest known field, or the expected type.
  """
  return override_all(config, [(path, text)])


def override_all(config: Any, changes: Iterable[tuple[str, str]]) -> Any:
  """`override` of several (path, text) at once, in whatever order.

  A whole object is set before what lies below it, indices are those before
  any removal, and fields of one object are checked together.

  Raises ValueError if one field is set to two values.
  """
  return _replace(
    config,
    [
      (
        path.split('.'),
        path,
        lambda old, hint, path=path, text=text: _checked(
          parse_literal(text), old, hint, path
        ),
      )
      for path, text in changes
    ],
  )


def add_piece(config: Any, path: str, text: str) -> Any:
  """Appends `Class(field=literal, ...)` to the tuple at the dotted path."""

  def append(old, hint):
    if not isinstance(old, tuple):
      raise ValueError(f'--add: {path} is not a tuple of pieces')
    added = _checked((parse_piece(text),), old, hint, f'--add={path}')
    return (*old, *added)

  return _replace(config, [(path.split('.'), path, append)])


def parse_literal(text: str) -> Any:
  """A literal, `null`/`true`/`false`, a piece, a tuple of some, or a text."""
  words = {'null': None, 'true': True, 'false': False}
  if text in words:
    return words[text]
  try:
    return ast.literal_eval(text)
  except _UNREADABLE:
    pass
  if text.endswith(')') and text[:1].isalpha():
    return parse_piece(text)
  return parse_piece(text) if _is_tuple_of_calls(text) else text


def _is_tuple_of_calls(text):
  """Returns whether it is Python in brackets that calls something."""
  if text[:1] not in ('(', '['):
    return False
  try:
    return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(text)))
  except _UNREADABLE:
    return False


def parse_piece(text: str) -> Any:
  """Builds a piece from a restricted constructor call: keyword literals, and
  other pieces or tuples of them."""
  try:
    node = ast.parse(text, mode='eval').body
  except _UNREADABLE as error:
    raise ValueError(f'cannot read {text!r} as Class(field=value)') from error
  return _build(node, text)


def _build(node, text):
  if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
    try:
      return ast.literal_eval(node)
    except _UNREADABLE as error:
      if isinstance(node, (ast.Tuple, ast.List)):  # of pieces
        return tuple(_build(part, text) for part in node.elts)
      hint = ''
      if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        hint = f': name the class only, {node.func.attr}(...)'
      raise ValueError(
        f'only literals and pieces allowed in {text!r}{hint}'
      ) from error
  if node.args or any(k.arg is None for k in node.keywords):
    raise ValueError(f'{text!r}: name every field, as in Class(field=value)')
  known = classes((*PIECE_MODULES, *user_modules.names()))
  name = class_today(node.func.id, known)
  if name not in known:
    raise ValueError(_unknown_piece(name, known))
  values = {str(k.arg): _build(k.value, text) for k in node.keywords}
  values = fields_today(known[name], values)
  return construct(known[name], _typed(known[name], values))


def class_today(name: str, known: Iterable[str]) -> str:
  """The name of today, of a class that an earlier version may have named.

  A class in `known` keeps its name: the user may have one of a former name.
  """
  return name if name in known else RENAMED.get(name, name)


def fields_today(cls: type, values: dict[str, Any]) -> dict[str, Any]:
  """The values by today's names of fields of cls."""
  return {
    _field_today(cls, name): value
    for name, value in values.items()
    if (cls.__name__, name) not in REMOVED
  }


def _field_today(cls, name):
  return RENAMED.get((cls.__name__, name), name)


def _unknown_piece(name, known):
  """First what is true of every class of the user, then a guess."""
  for module in user_modules.names():
    found = vars(importlib.import_module(module)).get(name)
    if isinstance(found, type):
      return (
        f'{name} of {module} is a class, but not a piece: write @piece above it'
      )
  own = user_modules.defining(name) or 'FILE.py'
  what, *rest = unknown_name('piece', name, known).split('.', 1)
  return f'{what}. If it is yours, import it with --import={own}.{rest[0]}'


def _typed(cls, kwargs):
  """The values as their fields' types, as --set has them."""
  hints = typing.get_type_hints(cls)
  free = {name for name in kwargs if hints.get(name, Any) in (Any, tuple)}
  return {
    name: value
    if name in free
    else _checked(value, None, hints[name], f'{cls.__name__}.{name}')
    for name, value in kwargs.items()
  }


def construct(cls: type, kwargs: dict[str, Any]) -> Any:
  """Builds cls from named fields; an unknown one names the nearest."""
  known = [f.name for f in dataclasses.fields(cls)]
  for name in kwargs:
    if name not in known:
      raise ValueError(unknown_name(f'field of {cls.__name__}', name, known))
  nothing = dataclasses.MISSING
  for f in dataclasses.fields(cls):
    given = f.name in kwargs or f.default is not nothing
    if f.init and not given and f.default_factory is nothing:
      raise ValueError(f'{cls.__name__} needs a value of {f.name!r}')
  return cls(**kwargs)


def classes(modules: Iterable[str]) -> dict[str, type]:
  """Name -> dataclass, of what modules define or import.

  Raises ValueError if two classes share a name: a name must say which is meant.
  """
  found: dict[str, type] = {}
  for name in modules:
    for value in vars(importlib.import_module(name)).values():
      if isinstance(value, type) and dataclasses.is_dataclass(value):
        other = found.setdefault(value.__name__, value)
        if other is not value:
          raise ValueError(
            f'two classes are named {value.__name__!r}: that of '
            f'{other.__module__} and that of {value.__module__}; rename one'
          )
  return found


def _replace(node, changes):
  """The node with changes (keys below it, whole path, function of the old)."""
  if isinstance(node, tuple):
    changed = {
      index: _changed(node[index], Any, below)
      for index, below in _by_key(node, changes, _tuple_index).items()
    }
    removed = [index for index, new in changed.items() if new is None]
    return tuple(
      changed.get(index, old)
      for index, old in enumerate(node)
      if index not in removed
    )
  if not dataclasses.is_dataclass(node):
    (key, *below), path, _ = changes[0]
    if isinstance(node, dict):
      whole = '.'.join(path.split('.')[: -1 - len(below)])
      raise ValueError(f'{path}: set the whole: {whole}={{...}}')
    raise ValueError(f'{path}: {key!r} lies below a plain value')
  hints = typing.get_type_hints(type(node))
  return dataclasses.replace(
    node,
    **{
      key: _changed(getattr(node, key), hints.get(key, Any), below)
      for key, below in _by_key(node, changes, _field_name).items()
    },
  )


def _by_key(node, changes, resolve):
  """{field or index of the node: changes below it}."""
  found = {}
  for (key, *rest), path, change in changes:
    found.setdefault(resolve(node, key, path), []).append((rest, path, change))
  return found


def _changed(old, hint, changes):
  """A field's new value: set as a whole first, then what lies below."""
  whole = [
    (path, change(old, hint)) for rest, path, change in changes if not rest
  ]
  for path, value in whole[1:]:
    if value != whole[0][1]:
      raise ValueError(
        f'{path} is set to {whole[0][1]!r} and to {value!r}: give one value'
      )
  new = whole[0][1] if whole else old
  below = [change for change in changes if change[0]]
  return _replace(new, below) if below else new


def _field_name(node, key, path):
  fields = [f.name for f in dataclasses.fields(node)]
  if key not in fields:
    key = _field_today(type(node), key)
  if why := REMOVED.get((type(node).__name__, key)):
    raise ValueError(f'{path} is gone, as {why}: leave it out')
  if key not in fields:
    section, _, last = path.rpartition('.')
    guess = None
    if last == key and not section:
      guess = meant(type(node), key)
    elif FOREIGN.get(key, '').rpartition('.')[0] == section:
      guess = FOREIGN[key].rpartition('.')[2]
    what = f'field in {path!r}'
    raise ValueError(unknown_name(what, key, fields, guess))
  return key


def meant(cls: type, name: str) -> str | None:
  """The path of the field that a bare name means; None: there is no such field.

  'rollout.group_size' for 'group_size', which one section has, and for
  'num_generations', as another library calls it.
  """
  hints = typing.get_type_hints(cls)
  foreign = FOREIGN.get(name)
  if foreign is not None and foreign.partition('.')[0] in hints:
    return foreign
  found = [
    f'{section}.{name}'
    for section, hint in hints.items()
    if isinstance(hint, type) and dataclasses.is_dataclass(hint)
    if name in [field.name for field in dataclasses.fields(hint)]
  ]
  return found[0] if len(found) == 1 else None


def _tuple_index(node, key, path):
  if key.lstrip('-').isdigit():
    if not -len(node) <= int(key) < len(node):
      raise ValueError(f'{path}: index {key} outside 0..{len(node) - 1}')
    return int(key) % len(node)
  names = [type(piece).__name__ for piece in node]
  key = class_today(key, names)
  if key not in names:
    raise ValueError(unknown_name(f'piece in {path!r}', key, names))
  if names.count(key) > 1:
    raise ValueError(
      f'{path}: {key} occurs {names.count(key)} times; use an '
      f'index, as in {names.index(key)}'
    )
  return names.index(key)


def unknown_name(
  what: str, name: str, known: Iterable[str], guess: str | None = None
) -> str:
  """The text of an error about a name that is not in known.

  guess: what is meant; None: the nearest of the known names.
  """
  known = sorted(known)
  names = ', '.join(known) or 'none'
  hint = f' Did you mean {guess!r}?' if guess else nearest(name, known)
  return f'unknown {what}: {name!r}.{hint} Known: {names}'


def nearest(name: str, known: Iterable[str]) -> str:
  """' Did you mean ...?' with the most similar known name, or ''.

  One of the same letters is nearer than others: 'gpro' is 'grpo'.
  """
  by_lower = {text.lower(): text for text in sorted(known)}
  name = name.lower()
  near = [text for text in by_lower if sorted(text) == sorted(name)]
  near += difflib.get_close_matches(name, by_lower, n=1, cutoff=0.4)
  return f' Did you mean {by_lower[near[0]]!r}?' if near else ''


def _is_piece(value):
  return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _asks_for_pieces(hint):
  """Returns whether a field holds a piece of a role, or a tuple of them."""
  classes = typing.get_args(hint) or (hint,)
  return any(
    isinstance(x, type) and x.__module__.startswith('rl_jax.pieces')
    for x in classes
  )


def _checked_pieces(value, hint, path):
  """The value if it is a piece, None, or (where asked for) pieces in a tuple.

  A plain value would only fail in the middle of tracing.
  """
  if hint is tuple:
    if isinstance(value, (tuple, list)) and all(map(_is_piece, value)):
      return tuple(value)
    raise ValueError(f'{path}: expected a tuple of pieces, got {value!r}')
  if value is None or _is_piece(value):
    return value
  raise ValueError(f'{path}: expected Class(field=value), got {value!r}')


def _checked(value, old, hint, path) -> Any:
  """The value converted to the field's type, or a ValueError naming both."""
  if isinstance(value, int) and not -(2**63) <= value < 2**63:
    raise ValueError(f'{path}: {value} has more than 64 bits')
  if _asks_for_pieces(hint):
    # A piece of another role passes: the method says where its place is.
    return _checked_pieces(value, typing.get_origin(hint) or hint, path)
  if hint is tuple or (hint is Any and (old is None or _is_piece(old))):
    return _checked_pieces(value, hint, path)
  if hint is Any or 'Array' in str(hint):
    if isinstance(old, (bool, int, float, str)) and not isinstance(
      value, type(old)
    ):
      if isinstance(old, float) and isinstance(value, int):
        return float(value)
      hint = type(old)
    else:
      return value
  options = _options(hint)
  plain = tuple(typing.get_origin(o) or o for o in options)
  if isinstance(value, list) and tuple in plain:
    value = tuple(value)
  if isinstance(value, int) and not isinstance(value, bool):
    if int not in plain and float in plain:
      return float(value)
  if isinstance(value, plain) and _fits(value, hint):
    return value
  raise ValueError(_wrong_type(value, options, path))


def check_types(config: Any, path: str = '') -> None:
  """Raises ValueError if a field of an object has a value of another type.

  path: of the object. An int is a float. Not checked are objects that are not
  of this library, and those in a tuple: who reads them says more. Nor is what
  lies below.
  """
  try:
    hints = typing.get_type_hints(type(config))
  except (NameError, TypeError, AttributeError):
    return
  for field in dataclasses.fields(config):
    value, hint = getattr(config, field.name), hints.get(field.name, Any)
    one = _asks_for_pieces(hint) and typing.get_origin(hint) is not tuple
    if one and _is_piece(value):
      continue  # the method says where its place is
    is_tuple = isinstance(value, tuple)
    kept = tuple(x for x in value if not _is_piece(x)) if is_tuple else value
    if field.init and 'Array' not in str(hint) and not _fits(kept, hint):
      where = f'{path}.{field.name}'.lstrip('.')
      raise ValueError(_wrong_type(value, _options(hint), where))


def _options(hint):
  """(A, B) of A | B; any other type only."""
  is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
  return typing.get_args(hint) if is_union else (hint,)


def _wrong_type(value, options, path):
  """The text of an error about a value that is of none of the types."""
  plain = tuple(typing.get_origin(o) or o for o in options)
  # An element of a wrong type: the whole type says what is allowed.
  shown = options if isinstance(value, plain) and tuple in plain else plain
  names = ' or '.join(map(_type_name, shown))
  return f'{path}: expected {names}, got {value!r} ({type(value).__name__})'


def _is_checked(value):
  """Returns whether it is a plain value or an object of this library."""
  own = type(value).__module__.split('.')[0] == 'rl_jax'
  plain = (bool, int, float, str, tuple, list, dict, types.NoneType)
  return own or isinstance(value, plain)


def _fits(value, hint):
  """Returns whether a value is of the type, elements of tuples included."""
  options = _options(hint)
  if len(options) > 1:
    return any(_fits(value, option) for option in options)
  plain, items = typing.get_origin(hint) or hint, typing.get_args(hint)
  if plain is Any or not _is_checked(value):
    return True
  if not isinstance(plain, type) or getattr(plain, '_is_protocol', False):
    return True
  if plain is not tuple or not items:
    number = plain is float and isinstance(value, int)
    as_bool = isinstance(value, bool) and plain is not bool
    return (number or isinstance(value, plain)) and not as_bool
  if items[-1] is ...:
    items = items[:1] * len(value) if isinstance(value, tuple) else items
  return (
    isinstance(value, tuple)
    and len(value) == len(items)
    and all(map(_fits, value, items))
  )


def _type_name(hint):
  """The type as one writes it, without modules."""
  if isinstance(hint, type) and not typing.get_args(hint):
    return hint.__name__
  return re.sub(r'(\w+\.)+(?=\w)', '', str(hint))
