"""The differences between configurations: keys, short labels, lines.

Left out everywhere are the seed and what says where and how a run was computed,
not what (MACHINE). Defaults do not count: both sides are whole configurations
of today's classes.
"""

from collections.abc import Sequence
import dataclasses
import functools
import importlib
import itertools
import json
from typing import Any

from experiments.flags import configuration
from experiments.tables.method_difference import differences
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method

MACHINE = (
  'mesh',
  'checkpoint',
  'model.remat',
  'model.attention',
  'rollout.slots',
  'rollout.cache_tokens',
  'rollout.parts',
  'update.microbatch_prompts',
  'update.pack',
  'evaluation.batch_prompts',
  'verifier.num_workers',
  'verifier.memory_limit_bytes',
  'verifier.journal_sync',
  'verifier.limits',
  'verifier.rates',
  'guards.log_rollouts',
)
_MISSING = object()

Flat = dict[str, Any]  # path -> plain value, or class name of an object


def flat(value: Any, path: str = '') -> Flat:
  """Every field by its path: 'method.losses.PPOClip.clip_low'.

  Objects in a tuple have the name of their class, the second one of a class
  ends in #2.
  """
  if dataclasses.is_dataclass(value):
    found: Flat = {path: type(value).__name__}
    for field in dataclasses.fields(value):
      if field.init:
        found |= flat(getattr(value, field.name), _join(path, field.name))
    return found
  if isinstance(value, tuple) and all(map(dataclasses.is_dataclass, value)):
    names = [type(item).__name__ for item in value]
    found = {}
    for i, (name, item) in enumerate(zip(names, value, strict=True)):
      repeats = names[:i].count(name)
      name += f'#{repeats + 1}' * bool(repeats)
      found |= flat(item, _join(path, name))
    return found
  return {path: value}


def _join(path: str, name: str) -> str:
  return f'{path}.{name}' if path else name


def _counts(path: str) -> bool:
  """True for a path that is part of what a run computes."""
  return path != 'seed' and not any(
    path == name or path.startswith(f'{name}.') for name in MACHINE
  )


def key(config: ExperimentConfig) -> str:
  """A text that is equal for configurations that differ in nothing above."""
  found = {p: repr(v) for p, v in flat(config).items() if _counts(p)}
  return json.dumps(found, sort_keys=True)


def varying(flats: Sequence[Flat]) -> list[str]:
  """Paths whose values differ; of an object of another class only itself."""
  paths = [p for p in dict.fromkeys(p for f in flats for p in f) if _counts(p)]

  def differ(p):
    return len({repr(f.get(p, _MISSING)) for f in flats}) > 1

  found = [path for path in paths if differ(path)]

  def below(p):
    return any(p != q and p.startswith(f'{q}.') for q in found if q)

  return [path for path in found if not below(path)]


def fields(
  configs: Sequence[ExperimentConfig], typed: Sequence[str | None] = ()
) -> list[dict[str, str]]:
  """Short name -> value, of what varies between configurations.

  The method comes first, as typed or else by its name in configs/methods and
  the changes to it. Fields that a configuration lacks, as those of a piece, are
  ''. typed: what the user called each method, see typed.method_of.
  """
  flats = [flat(config) for config in configs]
  paths = varying(flats)
  named = [
    (text.partition(' ')[0], [text.partition(' ')[2]] if ' ' in text else [])
    if text
    else _method(config.method)
    for config, text in itertools.zip_longest(configs, typed)
  ]
  found: list[dict[str, str]] = [{} for _ in configs]
  if len({name for name, _ in named}) > 1:
    # The changes to a named method belong to its name.
    for (name, changes), values in zip(named, found, strict=True):
      values['method'] = ' '.join([name, *changes])
    paths = [p for p in paths if p.partition('.')[0] != 'method']
  short = _short(paths)
  for values, one in zip(found, flats, strict=True):
    for path in paths:
      values[short[path]] = _text(one.get(path, _MISSING))
  return found


def labels(
  configs: Sequence[ExperimentConfig], typed: Sequence[str | None] = ()
) -> list[str]:
  """A short label for each of several different configurations.

  'dapo learning_rate=0.001': the method if methods differ, and the fields that
  do. A field that the method determines, as the value head of PPO, is left out.
  typed: see fields.
  """
  found = fields(configs, typed)
  methods = [values.pop('method', '') for values in found]
  names = [name for name in found[0]] if found else []
  if any(methods):

    def of_method(n, m):
      return {v[n] for v, x in zip(found, methods, strict=True) if x == m}

    names = [n for n in names if any(len(of_method(n, m)) > 1 for m in methods)]
  made = []
  for method, values in zip(methods, found, strict=True):
    words = [_word(name, values[name]) for name in names]
    words = [method, *words]
    made.append(' '.join(word for word in words if word))
  if not all(made):  # one lacks what the others add
    names = [
      text.partition(' ')[0] if text else _method(config.method)[0]
      for config, text in itertools.zip_longest(configs, typed)
    ]
    made = [f'{n} {m}'.strip() for n, m in zip(names, made, strict=True)]
  repeats = [made[:i].count(label) for i, label in enumerate(made)]
  return [
    f'{m} #{n + 1}' if n else m for m, n in zip(made, repeats, strict=True)
  ]


def _word(name: str, value: str) -> str:
  if value and value == name.rpartition('.')[2].partition('#')[0]:
    return f'+{value}'  # a piece that others lack
  return f'{name}={value}' if value else ''


def _text(value: Any) -> str:
  if value is _MISSING:
    return ''
  if isinstance(value, float):
    return f'{value:g}'
  return str(value)


def _short(paths: Sequence[str]) -> dict[str, str]:
  """Path -> its last words, as few as tell paths apart.

  Fields of pieces keep the class: 'KLPenalty.coef'.
  """
  found = {}
  for path in paths:
    words = path.split('.')
    count = 1
    if len(words) > 1 and words[-2][:1].isupper():
      count = 2

    def tail(p, n):
      return p.split('.')[-n:]

    while sum(tail(p, count) == words[-count:] for p in paths) > 1:
      count += 1
    found[path] = '.'.join(words[-count:])
  return found


@functools.cache
def _known() -> dict[str, Flat]:
  """Name -> fields, of all methods of configs/methods, then their variants.

  A variant that is the control of a method may be equal to another method, or
  as near to one, which then has its own name.
  """
  found = {}
  for name in configuration.names('configs.methods'):
    module = importlib.import_module(f'configs.methods.{name}')
    for variant in ('', *getattr(module, 'VARIANTS', {})):
      full = f'{name}@{variant}' if variant else name
      found[full] = flat(configuration.load_method(full), 'method')
  return dict(sorted(found.items(), key=lambda item: '@' in item[0]))


def _method(method: Method) -> tuple[str, list[str]]:
  """(nearest name, changes): ('grpo', ['KLPenalty.coef=0.1'])."""
  own = flat(method, 'method')
  for name, base in _known().items():
    if base == own:
      return name, []
  name = min(_known(), key=lambda name: len(varying([own, _known()[name]])))
  base = _known()[name]
  paths = varying([base, own])
  short = _short(paths)
  changes = []
  for path in paths:
    if path not in own:
      changes.append(f'-{short[path]}')
    else:
      changes.append(_word(short[path], _text(own[path])))
  return name, changes


def difference(left: ExperimentConfig, right: ExperimentConfig) -> list[str]:
  """Lines: pieces of the method as `differences`, other fields by path."""
  lines = differences(left.method, right.method)
  flats = [flat(left), flat(right)]
  for path in varying(flats):
    if path.partition('.')[0] != 'method':
      old, new = (_compact(_at(c, path)) for c in (left, right))
      lines.append(f'{path}: {old} -> {new}')
  return lines


def _at(config: Any, path: str) -> Any:
  """The value at a path of `flat`, outside of tuples; _MISSING if none."""
  for name in path.split('.'):
    config = getattr(config, name, _MISSING)
  return config


def _compact(value: Any) -> str:
  """A value, of objects only what differs from the defaults."""
  if value is _MISSING:
    return 'none'
  if not dataclasses.is_dataclass(value):
    return f'{value:g}' if isinstance(value, float) else repr(value)
  changed = []
  for field in dataclasses.fields(value):
    own, default = getattr(value, field.name), field.default
    if field.default_factory is not dataclasses.MISSING:
      default = field.default_factory()
    if field.init and own != default:
      changed.append(f'{field.name}={_compact(own)}')
  return f'{type(value).__name__}({", ".join(changed)})'
