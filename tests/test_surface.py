"""`import rl_jax` gives names, and imports no large package."""

import ast
import json
import pathlib
import subprocess
import sys
import tomllib

import pytest

import rl_jax

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Packages of the default installation that neither pieces nor configurations
# need; flax imports rich by itself.
LATE = (
  *('gguf', 'matplotlib', 'math_verify', 'orbax', 'safetensors'),
  *('sympy', 'tensorboardX', 'tensorflow_datasets', 'tokenizers'),
)
# Makes imports of the packages fail as if they were not installed.
WITHOUT = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in {names}:
      raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Missing())
"""


def run(code, without=()):
  """The output of a fresh interpreter."""
  code = WITHOUT.format(names=set(without)) * bool(without) + code
  done = subprocess.run(
    [sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr[-2000:]
  return done.stdout


def loaded_by(statement):
  """Packages in sys.modules after a statement."""
  text = run(
    f'import json, sys\n{statement}\n'
    'print(json.dumps(sorted({x.split(".")[0] for x in sys.modules})))'
  )
  return set(json.loads(text))


def public_names():
  """Names that rl_jax/__init__.py imports for type checkers."""
  tree = ast.parse((ROOT / 'rl_jax/__init__.py').read_text())
  (block,) = (node for node in tree.body if isinstance(node, ast.If))
  return {
    alias.asname: f'{node.module}.{alias.name}'
    for node in block.body
    for alias in node.names
  }


def test_type_checkers_see_what_exists():
  """The lazy names are those of the imports that only type checkers read."""
  names = public_names()
  assert names.keys() == {*rl_jax._NAMES, *rl_jax._MODULES}
  for name, path in names.items():
    value = getattr(rl_jax, name)
    if name in rl_jax._MODULES:
      assert value.__name__ == path
    else:
      assert f'{rl_jax._NAMES[name]}.{name}' == path
    assert name in dir(rl_jax)
  with pytest.raises(AttributeError, match="no attribute 'trian'"):
    rl_jax.trian  # noqa: B018


def test_version_is_written_once():
  """pyproject reads it; CITATION.cff repeats it."""
  project = tomllib.loads((ROOT / 'pyproject.toml').read_text())
  assert project['project']['dynamic'] == ['version']
  dynamic = project['tool']['setuptools']['dynamic']
  assert dynamic == {'version': {'attr': 'rl_jax.__version__'}}
  cited = (ROOT / 'CITATION.cff').read_text()
  assert f'\nversion: {rl_jax.__version__}\n' in cited
  first = (ROOT / 'CHANGELOG.md').read_text().split('\n## ')[1]
  assert first.startswith(rl_jax.__version__)


def test_the_package_imports_nothing():
  """Not even numpy; the version is known."""
  found = loaded_by('import rl_jax; rl_jax.__version__; dir(rl_jax)')
  assert not found & {'numpy', 'jax', 'flax', 'absl', *LATE}


@pytest.mark.parametrize(
  'module',
  ['tasks', 'tasks.environments', 'verification', 'verification.sandbox'],
)
def test_workers_that_judge_import_no_jax(module):
  """They are forked, and there may be many."""
  found = loaded_by(f'import rl_jax.{module}')
  assert not found & {'jax', 'flax', 'optax', *LATE}


@pytest.mark.parametrize('name', ['Method', 'ExperimentConfig', 'train'])
def test_packages_are_imported_where_they_are_used(name):
  """Neither a configuration nor the training loop needs them to be named."""
  assert not loaded_by(f'import rl_jax; rl_jax.{name}') & set(LATE)


def test_pieces_need_jax_flax_optax_and_chex_only():
  """A method can be made, and its digest, without what runs need."""
  text = run(
    'from rl_jax import Method, aggregation, credit, losses, weights\n'
    'method = Method(\n'
    '  credit=(credit.GroupCenter(),), losses=(losses.PPOClip(),),\n'
    '  weights=(weights.ClipCovDrop(),), aggregation=aggregation.TokenMean())\n'
    'print(len(list(method.pieces())))',
    without=(*LATE, 'jinja2', 'importlib_resources', 'markupsafe'),
  )
  assert text == '4\n'


@pytest.mark.parametrize(
  ('package', 'statement', 'what'),
  [
    (
      'orbax',
      'from rl_jax.records.checkpoints.checkpointer import Checkpointer\n'
      'Checkpointer("/tmp/nothing")',
      "a checkpoint needs the package 'orbax-checkpoint': "
      'pip install orbax-checkpoint',
    ),
    (
      'tensorboardX',
      'from rl_jax.records.event_file import EventFile\nEventFile("/tmp/no")',
      'pip install tensorboardX',
    ),
    (
      'safetensors',
      'from rl_jax.models.files import directories\n'
      'directories.save_tensors("/tmp", "nothing", {})',
      'pip install safetensors',
    ),
    (
      'matplotlib',
      'from experiments.reports import figures\nfigures.new_figure(1.0, 1.0)',
      'pip install matplotlib',
    ),
  ],
)
def test_what_is_missing_is_named(package, statement, what):
  """By the error of what needs it."""
  body = '\n'.join(f'  {line}' for line in statement.splitlines())
  text = run(
    f'try:\n{body}\nexcept ImportError as error:\n  print(error)',
    without=(package,),
  )
  assert what in text


def test_extras_of_errors_exist():
  """`rl_jax[NAME]` in a message is an extra of pyproject.toml."""
  project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
  for path in (ROOT / 'rl_jax').rglob('*.py'):
    text = path.read_text()
    for part in text.split('rl_jax[')[1:]:
      name = part.split(']')[0]
      assert name in project['optional-dependencies'], f'{path}: {name}'
