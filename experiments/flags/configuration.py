"""Flags that choose a configuration, and functions that load one.

--config is the path of a module with get_config(method), --method the name of a
module in configs/methods. There is no other registry.
"""

import importlib
import pathlib
import sys
from typing import Any

from absl import app, flags

from rl_jax import overrides
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.records.checkpoints.files import quiet_orbax
from rl_jax.runtime import output, processes

_HELP = ('help', 'helpshort', 'helpfull', 'h', '?')
ROOT = pathlib.Path(__file__).resolve().parents[2]


def define_flags() -> None:
  """Defines --config, --method, --set and --add."""
  flags.DEFINE_string('config', None, 'Module: configs/NAME.py.', required=True)
  flags.DEFINE_string('method', 'grpo', 'Method: see list_methods.')
  flags.DEFINE_multi_string('set', [], 'PATH=LITERAL; may be repeated.')
  flags.DEFINE_multi_string('add', [], 'PATH=Class(field=literal); repeated.')


def from_flags() -> ExperimentConfig:
  """The configuration that the flags describe.

  Raises ValueError naming the nearest known name for anything unknown.
  """
  values = flags.FLAGS
  sets = values['set'].value
  paths = [_split(text, '--set')[0] for text in set(sets)]
  for path in paths:
    if paths.count(path) > 1:
      raise ValueError(f'--set={path}=... has two values: give one')
  return build(values.config, values.method, sets, values.add)


def build(
  config: str, method: str, sets: list[str] = (), adds: list[str] = ()
) -> ExperimentConfig:
  """The configuration of a module, with a method, sets and adds applied.

  Of two sets of one path the later counts; on a command line they are an error.
  """
  result = load_config(config, load_method(method))
  for text in adds:
    result = overrides.add_piece(result, *_split(text, '--add'))
  changes = dict(_split(text, '--set') for text in sets)
  return overrides.override_all(result, changes.items())


def load_config(path: str, method: Method) -> ExperimentConfig:
  """Imports configs/NAME.py (or NAME) and calls get_config(method)."""
  name = path.removesuffix('.py').removeprefix('configs/').replace('/', '.')
  module = _import('configs', name, 'config', path)
  if not hasattr(module, 'get_config'):
    raise ValueError(f'{path} has no function get_config(method)')
  return module.get_config(method)


def load_method(name: str) -> Method:
  """Imports configs/methods/NAME.py and calls get_method().

  NAME@VARIANT applies the changes that the module's VARIANTS list:
  PATH=LITERAL, or PATH+=Class(field=literal), as --set and --add, without
  `method.`.
  """
  name, at, variant = name.partition('@')
  module = _import('configs.methods', name, 'method')
  method = module.get_method()
  if not at:
    return method
  known = getattr(module, 'VARIANTS', {})
  if variant not in known:
    what = f'variant of {name}'
    raise ValueError(overrides.unknown_name(what, variant, known))
  for change in known[variant]:
    path, value = change.split('=', 1)
    apply = overrides.add_piece if path.endswith('+') else overrides.override
    method = apply(method, path.removesuffix('+'), value)
  return method


def names(package: str) -> list[str]:
  """Names of the modules of a package, sorted."""
  folder = ROOT / package.replace('.', '/')
  return sorted(p.stem for p in folder.glob('*.py') if p.stem != '__init__')


def _import(package: str, name: str, what: str, typed: str = '') -> Any:
  """The module; `typed` is what the user wrote for it, as configs/NAME.py."""
  known = names(package)
  if name not in known:
    typed = typed or name
    before = 'configs/' * typed.startswith('configs/')
    after = '.py' * typed.endswith('.py')
    known = [f'{before}{name}{after}' for name in known]
    raise ValueError(overrides.unknown_name(what, typed, known))
  return importlib.import_module(f'{package}.{name}')


def _split(text: str, flag: str) -> tuple[str, str]:
  path, equals, value = text.partition('=')
  if not equals:
    raise ValueError(f'{flag}={text}: expected {flag}=PATH=VALUE')
  return path, value


def unescaped(text: str) -> str:
  r"""A text from the command line, where \n stands for a line break."""
  try:
    # unicode_escape reads Latin-1: other characters become escapes first.
    escaped = text.encode('latin-1', 'backslashreplace')
    return escaped.decode('unicode_escape')
  except UnicodeDecodeError as error:
    raise ValueError(f'{text!r}: {error.reason}') from None


def run(main: Any) -> None:
  """app.run that quietens Orbax and prints configuration errors as one line.

  --help lists the flags of all modules of experiments, and exits with 0.
  """

  def guarded(argv):
    output.tolerate_failures()
    quiet_orbax()
    try:
      main(argv)
    except (ValueError, FileNotFoundError, MemoryError) as error:
      print(f'error: {error}', file=sys.stderr)
      processes.end_all(2)
      if flags.FLAGS.traceback:
        raise
      sys.exit(2)
    except Exception:
      processes.end_all(1)
      raise

  flags.DEFINE_bool('traceback', False, 'Show the traceback of errors.')
  app.run(guarded, flags_parser=_parse)


def _parse(argv: list[str]) -> list[str]:
  for module, found in flags.FLAGS.flags_by_module_dict().items():
    if module.startswith('experiments.'):
      for flag in found:  # --help shows the key flags of the main module
        flags.FLAGS.register_key_flag_for_module(argv[0], flag)
  try:
    return app.parse_flags_with_usage(argv)
  except SystemExit as end:
    if any(text.lstrip('-') in _HELP for text in argv[1:]):
      raise SystemExit(0) from None  # absl exits with 1
    raise end
