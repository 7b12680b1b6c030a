"""Flags that choose a configuration, and functions that load one.

--config is a name in configs/, a file anywhere with get_config(method), or a
JSON file as experiment.json, or papers/NAME, a recipe of experiments/papers;
--method is a name in configs/methods or a file with
get_method(). There is no other registry. Every binary has --import, for classes
and functions of the user that its other files name.
"""

from collections.abc import Sequence
import dataclasses
import importlib
import inspect
import itertools
import os
import pathlib
import re
import sys
from typing import Any

from absl import app, flags

from experiments.flags import own_code
from experiments.flags.fields import once, split
from rl_jax import overrides, serialization, user_modules
from rl_jax.config import ExperimentConfig, GuardConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.records.checkpoints.failure import CheckpointError
from rl_jax.records.checkpoints.files import quiet_orbax
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runs import guards
from rl_jax.runtime import output, processes, stop_signal
from rl_jax.tasks import RewardFunctions
from rl_jax.verification.pool import VerifierConfig

# Of --flag=~/runs, --set=model.path=~/model and --flag=~/a,~/b.
_HOME = re.compile(r'(^--?\w+=(?:[\w.]+=)?|,)~(?=/)')
_HELP = ('help', 'helpshort', 'helpfull', 'h', '?')
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_METHOD = 'grpo'

# Not a package of that name in the working directory, where Python looks first.
sys.path.insert(0, str(ROOT))
importlib.import_module('configs')
sys.path.remove(str(ROOT))


def define_flags(required: bool = True) -> None:
  """Defines --config, --method, --set, --add and --reward.

  required: whether --config must be given; programs that have another source
  of a configuration call `from_flags` only without it.
  """
  flags.DEFINE_string(
    'config',
    None,
    'configs/NAME.py or a file of yours with get_config(method), also with '
    '@VARIANT, or a JSON file such as the experiment.json of a run.',
    required=required,
  )
  flags.DEFINE_string(
    'method',
    None,
    'NAME, a file of yours with get_method(), or one of these with @VARIANT. '
    f'Default: that of the JSON file, else {DEFAULT_METHOD}. See list_methods.',
  )
  flags.DEFINE_multi_string('set', [], 'PATH=LITERAL; may be repeated.')
  flags.DEFINE_multi_string('add', [], 'PATH=Class(field=literal); repeated.')
  flags.DEFINE_multi_string(
    'reward',
    [],
    'FILE.py:FUNCTION[=WEIGHT], a function of (example, response), instead of '
    'the reward of the task; task=WEIGHT keeps that, too. May be repeated.',
  )


def from_flags() -> ExperimentConfig:
  """The configuration that the flags describe.

  Raises ValueError naming the nearest known name for anything unknown.
  """
  values = flags.FLAGS
  sets = once(values.set)
  config = build(values.config, values.method, sets, values.add)
  return with_rewards(config, values.reward)


def build(
  config: str,
  method: str | None = None,
  sets: Sequence[str] = (),
  adds: Sequence[str] = (),
) -> ExperimentConfig:
  """The configuration of a file, with a method, sets and adds applied.

  method: None keeps that of a JSON file, and is DEFAULT_METHOD otherwise. Of
  two sets of one path the later counts; on a command line they are an error.
  """
  if method is None and not config.endswith('.json'):
    method = DEFAULT_METHOD
  loaded = None if method is None else load_method(method)
  result = load_config(config, loaded)
  for text in adds:
    result = overrides.add_piece(result, *split(text, '--add'))
  result = changed(result, sets)
  diagnostics = result.diagnostics
  if diagnostics.influence_every and diagnostics.baseline is None:
    # A JSON file does not say what its method is called.
    baseline = load_method(baseline_of(method or DEFAULT_METHOD))
    diagnostics = dataclasses.replace(diagnostics, baseline=baseline)
    result = dataclasses.replace(result, diagnostics=diagnostics)
  return result


def changed(config: ExperimentConfig, sets: Sequence[str]) -> ExperimentConfig:
  """The configuration with texts PATH=LITERAL applied."""
  changes = dict(split(text, '--set') for text in sets)
  return overrides.override_all(config, changes.items())


def supervised(config: ExperimentConfig, batch_size: int) -> ExperimentConfig:
  """The run of the method sft on the responses that the task's data hold.

  batch_size rows make one iteration, which is one optimizer step; of several
  responses to a prompt the first one counts. Model, lengths, optimizer and
  evaluation are those of the configuration.
  """
  lengths = config.rollout
  return dataclasses.replace(
    config,
    method=load_method('sft'),
    reward_models=(),
    judges=(),
    partners=(),
    rollout=RolloutConfig(
      num_prompts=batch_size,
      recorded_prompts=batch_size,
      group_size=1,
      max_prompt_tokens=lengths.max_prompt_tokens,
      max_response_tokens=lengths.max_response_tokens,
    ),
    update=UpdateConfig(),
    verifier=VerifierConfig(),
    guards=GuardConfig(log_rollouts=0),
  )


def baseline_of(name: str) -> str:
  """The method that a method changes: BASELINE of its file, or grpo."""
  module = _module('configs.methods', _split_variant(name)[0], 'method')
  return getattr(module, 'BASELINE', 'grpo')


def with_rewards(
  config: ExperimentConfig, rewards: list[str]
) -> ExperimentConfig:
  """The configuration with the functions of --reward around its task."""
  if not rewards:
    return config
  weights = {}
  for text in rewards:
    function, equals, weight = text.rpartition('=')
    if not equals or ':' in weight:  # else the = is of the path
      function, weight = text, '1'
    if function in weights:
      raise ValueError(f'--reward={function} is given twice')
    try:
      weights[function] = float(weight)
    except ValueError:
      raise ValueError(f'--reward={text}: {weight!r} is not a number') from None
  own = weights.pop('task', 0.0)
  task = RewardFunctions(config.task, weights, task_weight=own)
  return dataclasses.replace(config, task=task)


def load_config(path: str, method: Method | None) -> ExperimentConfig:
  """Reads JSON, or calls get_config(method) of a file or of configs/NAME.

  Of JSON the method is replaced if one is given. NAME@VARIANT is as in
  `load_method`, with whole paths.
  """
  if path.endswith('.json'):
    config = serialization.read(path)
    if isinstance(config, ExperimentConfig) and method is not None:
      config = dataclasses.replace(config, method=method)
    module, variant = None, ''
  else:
    path, variant = _split_variant(path)
    module = _config_module(path)
    config = _call(module, 'get_config', path, method)
  if not isinstance(config, ExperimentConfig):
    raise ValueError(f'{path}: expected an ExperimentConfig, got {config!r}')
  return _varied(config, module, path, variant) if variant else config


def _config_module(path: str) -> Any:
  """The module of a configuration, or that of a recipe: papers/NAME."""
  if path.startswith('papers/'):
    paper = path.removeprefix('papers/')
    files = (ROOT / 'experiments' / 'papers').glob('*/recipe.py')
    known = [file.parent.name for file in files]
    if paper not in known:
      raise ValueError(overrides.unknown_name('recipe', paper, known))
    return importlib.import_module(f'experiments.papers.{paper}.recipe')
  name = path.removesuffix('.py').removeprefix('configs/')
  name = name.removeprefix('worlds/').replace('/', '.')
  return _module('configs', name, 'config', path)


def load_method(name: str) -> Method:
  """get_method() of configs/methods/NAME.py, or of a file.

  NAME@VARIANT applies the changes that the module's VARIANTS list:
  PATH=LITERAL, or PATH+=Class(field=literal), as --set and --add, without
  `method.`.
  """
  path, variant = _split_variant(name)
  module = _module('configs.methods', path, 'method')
  method = _call(module, 'get_method', path)
  if not isinstance(method, Method):
    raise ValueError(f'{path}: get_method() returned no Method: {method!r}')
  return _varied(method, module, path, variant) if variant else method


def _varied(value: Any, module: Any, path: str, variant: str) -> Any:
  """A configuration or method with the changes of VARIANTS[variant]."""
  known = getattr(module, 'VARIANTS', {})
  if variant not in known:
    what = f'variant of {path}'
    raise ValueError(overrides.unknown_name(what, variant, known))
  changes = [tuple(change.split('=', 1)) for change in known[variant]]
  for adds, found in itertools.groupby(changes, lambda x: x[0].endswith('+')):
    if adds:
      for field, text in found:
        value = overrides.add_piece(value, field.removesuffix('+'), text)
    else:  # together, so that fields of one object may change as one
      value = overrides.override_all(value, found)
  return value


def check_clone(what: str) -> None:
  """Raises ValueError where the programs are installed, without a repository.

  what: writes, or reads, files that only the repository has.
  """
  if not (ROOT / 'pyproject.toml').exists():
    raise ValueError(
      f'{what} is of files of the repository, which {ROOT} does not hold: run '
      'it in a clone'
    )


def names(package: str) -> list[str]:
  """Names of the modules of a package, sorted; of configs with its worlds."""
  folders = [ROOT / folder for folder in _folders(package)]
  paths = [p for folder in folders for p in folder.glob('*.py')]
  return sorted(p.stem for p in paths if p.stem != '__init__')


def _folders(package):
  """Returns where its modules are; names are unique, so that no folder is
  typed.
  """
  folder = package.replace('.', '/')
  return (folder, f'{folder}/worlds') if package == 'configs' else (folder,)


def file_of(package: str, name: str) -> str | None:
  """'configs/worlds/bandit.py' of ('configs', 'bandit'); None without one."""
  if name.isidentifier() and name != '__init__':
    for folder in _folders(package):
      if (ROOT / folder / f'{name}.py').is_file():
        return f'{folder}/{name}.py'
  return None


def _split_variant(name: str) -> tuple[str, str]:
  """(name or path, variant or ''); a folder may have an @, too.

  Raises: ValueError for an @ without a name after it.
  """
  if name.endswith('@'):
    raise ValueError(f'{name}: a variant has a name after the @')
  if '.py@' in name:
    path, _, variant = name.rpartition('@')
    return path, variant
  if _is_file(name):
    return name, ''
  path, _, variant = name.partition('@')
  return path, variant


def _is_file(text: str) -> bool:
  """Returns whether it is the path of a file of the user."""
  full = os.path.realpath(text)
  own = full.startswith(f'{ROOT}{os.sep}configs{os.sep}')
  return text.endswith('.py') and os.path.isfile(full) and not own


def _module(package: str, name: str, what: str, typed: str = '') -> Any:
  """The module of a file, or of a package; `typed` is what the user wrote."""
  typed = typed or name
  if _is_file(typed):
    return user_modules.load(typed)
  if typed.endswith('.py'):  # of this repository, from wherever
    full = pathlib.Path(typed).resolve()
    own = [ROOT / folder for folder in _folders(package)]
    name = full.stem if full.parent in own else name
  if file := file_of(package, name):
    return importlib.import_module(file.removesuffix('.py').replace('/', '.'))
  known = names(package)
  files = [f for name in known if (f := file_of(package, name))]
  hint = overrides.nearest(typed, [*known, *files, *_files_like(typed)])
  if typed.endswith('.py'):
    raise ValueError(f'{typed}: no such file.{hint}')
  raise ValueError(
    f'unknown {what}: {typed!r}.{hint} Known: {", ".join(known)}; or give the '
    'path of a file, NAME.py'
  )


def _files_like(typed: str) -> list[str]:
  """Python files of the folder that a name or path lies in, as one types."""
  folder = os.path.dirname(typed)
  found = os.listdir(folder or '.') if os.path.isdir(folder or '.') else []
  return [os.path.join(folder, x) for x in found if x.endswith('.py')]


def _call(module: Any, name: str, typed: str, *arguments: Any) -> Any:
  text = ', '.join('method' for _ in arguments)
  if not hasattr(module, name):
    raise ValueError(f'{typed} has no function {name}({text})')
  function = getattr(module, name)
  try:
    inspect.signature(function).bind(*arguments)
  except TypeError as error:
    raise ValueError(
      f'{typed}: {name}({text}) is not a call: {error}'
    ) from None
  return function(*arguments)


def unescaped(text: str) -> str:
  r"""A text from the command line, where \n stands for a line break."""
  try:
    # unicode_escape reads Latin-1: other characters become escapes first.
    escaped = text.encode('latin-1', 'backslashreplace')
    return escaped.decode('unicode_escape')
  except UnicodeDecodeError as error:
    raise ValueError(f'{text!r}: {error.reason}') from None


def run(main: Any, *, takes_files: bool = False) -> None:
  """app.run that quietens Orbax and prints errors of the user as one line.

  takes_files: whether arguments that are not flags reach main.
  --help lists the flags of all modules of experiments, and exits with 0.
  """

  def guarded(argv):
    output.tolerate_failures()
    quiet_orbax()
    try:
      if len(argv) > 1 and not takes_files:
        raise app.UsageError(f'unexpected arguments: {argv[1:]}')
      for text in flags.FLAGS['import'].value or ():
        user_modules.add(text)
      main(argv)
    except (ValueError, OSError, ImportError, MemoryError) as error:
      say(error)
      processes.end_all(2)
      if flags.FLAGS.traceback:
        raise
      sys.exit(2)
    except app.UsageError as error:
      say(error)
      sys.exit(2)
    except KeyboardInterrupt:
      say('interrupted')
      processes.end_all(stop_signal.SIGINT_EXIT_CODE)
      if flags.FLAGS.traceback:
        raise
      sys.exit(stop_signal.SIGINT_EXIT_CODE)
    except (guards.StopRunError, CheckpointError) as error:
      say(error)
      processes.end_all(1)
      if flags.FLAGS.traceback:
        raise
      sys.exit(1)
    except Exception as error:
      processes.end_all(1)
      exhausted = 'RESOURCE_EXHAUSTED' in str(error)
      own = exhausted or own_code.places(error)
      if flags.FLAGS.traceback or not own:
        raise
      if not exhausted:
        say(error)
        sys.exit(1)
      say(f'the device is out of memory: {str(error).splitlines()[0][:300]}')
      sys.exit(2)

  flags.DEFINE_bool('traceback', False, 'Show the traceback of errors.')
  flags.DEFINE_multi_string(
    'import',
    [],
    'PATH.py or MODULE of yours, whose classes and functions may be named; '
    'repeated. Nothing is imported because a file of a run names it.',
  )
  app.run(guarded, flags_parser=_parse)


def say(error: Exception | str) -> None:
  """Prints an error of the user on one line, with its place in their files."""
  text = error if isinstance(error, str) else own_code.described(error)
  print(f'error: {text}', file=sys.stderr)


def at_home(text: str) -> str:
  """A flag whose path begins with ~, which a shell leaves after an =.

  Else a folder named ~ would be made where the command runs.
  """
  if not _HOME.match(text):
    return text
  return _HOME.sub(lambda found: found[1] + os.path.expanduser('~'), text)


def _unknown_flag(error: flags.UnrecognizedFlagError) -> str:
  """The text of an error; a field of the configuration is set by --set."""
  path = None
  if 'set' in flags.FLAGS:
    path = overrides.meant(ExperimentConfig, error.flagname)
  if path is None:
    return str(error)
  flag = f'--set={path}=VALUE'
  return f'Unknown command line flag {error.flagname!r}. Did you mean {flag}?'


def _parse(argv: list[str]) -> list[str]:
  for module, found in flags.FLAGS.flags_by_module_dict().items():
    if module.startswith('experiments.'):
      for flag in found:  # --help shows the key flags of the main module
        flags.FLAGS.register_key_flag_for_module(argv[0], flag)
  if any(text.lstrip('-') in _HELP for text in argv[1:]):
    output.tolerate_failures()  # `--help | head` closes the pipe
    try:
      return app.parse_flags_with_usage(argv)
    except SystemExit:
      raise SystemExit(0) from None  # absl exits with 1
  argv = [argv[0], *map(at_home, argv[1:])]
  try:
    rest = flags.FLAGS(argv)
    for flag in flags.FLAGS.get_key_flags_for_module(argv[0]):
      if flag.value != flag.value:  # NaN passes the bounds of a flag
        raise flags.Error(f'flag --{flag.name}=nan: expected a number')
    return rest
  except flags.UnrecognizedFlagError as error:
    say(_unknown_flag(error))
    raise SystemExit(2) from None
  except flags.Error as error:
    missing = r'flag --(\w+)=None: Flag --\1 must have a value .*'
    lines = str(error).splitlines()
    say('; '.join(re.sub(missing, r'--\1 is missing', x) for x in lines))
    raise SystemExit(2) from None
