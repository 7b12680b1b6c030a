"""Pages that are written from the code: methods, pieces, configuration.

  python docs/generate.py

writes docs/generated/. Nothing in it is edited by hand or committed.
"""

import dataclasses
import importlib
import inspect
import pathlib
import pkgutil
import re
import shutil
import textwrap

from experiments.flags import configuration
from experiments.tables import all_methods, methods
from experiments.tables.method_difference import show

OUT = pathlib.Path(__file__).parent / 'generated'
# Folder of rl_jax/pieces -> what its pieces do, in the order of an iteration.
FAMILIES = {
  'shaping': 'Rewards, before anything is compared',
  'credit': 'Advantages and value targets',
  'selection': 'Which prompts are drawn and which groups are kept',
  'losses': 'Policy and value losses',
  'regularizers': 'Terms that are added to the policy loss',
  'weights': 'Token weights of the policy losses',
  'logits': 'Transforms of the sampling distribution',
  'preferences': 'Pairs of responses, and losses on them',
  'statistics': 'Functionals of the logits that pieces read',
}
SECTIONS = (
  *('rl_jax.config.ExperimentConfig', 'rl_jax.models.source.ModelSource'),
  *('rl_jax.models.ModelConfig', 'rl_jax.rollouts.collect.RolloutConfig'),
  *('rl_jax.episodes.turns.TurnConfig', 'rl_jax.learning.update.UpdateConfig'),
  'rl_jax.learning.optimizers.OptimizerConfig',
  *('rl_jax.config.EvaluationConfig', 'rl_jax.config.GuardConfig'),
  *('rl_jax.config.StoppingConfig', 'rl_jax.runtime.mesh.MeshConfig'),
  'rl_jax.verification.pool.VerifierConfig',
)


def write() -> None:
  """Writes all generated pages again."""
  shutil.rmtree(OUT, ignore_errors=True)
  OUT.mkdir()
  names = configuration.names(methods.PACKAGE)
  used = {name: _classes(name) for name in names}
  _put('methods', _table(names))
  for name in names:
    _put(f'method_{name}', _method(name))
  for family, title in FAMILIES.items():
    _put(f'pieces_{family}', _family(family, title, used))
  _put('configuration', _configuration())


def _put(name, text):
  (OUT / f'{name}.md').write_text(text, encoding='utf-8')


def _classes(name):
  """Names of the pieces of a method."""
  return {type(p).__name__ for _, p in configuration.load_method(name).pieces()}


def _table(names):
  """The table of all methods; what is left out here is on the pages of each."""
  shown = ('what it is', 'evidence', 'acts in', 'claimed and seen')
  places = [all_methods.HEADER.index(title) - 1 for title in shown]
  lines = [
    '# All methods',
    '',
    f'{len(names)} methods; `--method=NAME` trains with one of them. '
    '`configs/methods/README.md` is this table with their pieces and papers.',
    '',
    f'| method | {" | ".join(shown)} |',
    '|---' * (len(shown) + 1) + '|',
  ]
  for name, cells in all_methods.table().items():
    texts = [f'[{name}](method_{name}.md)', *(cells[i] for i in places)]
    texts = (text.replace('|', '&#124;') for text in texts)
    lines.append(f'| {" | ".join(texts)} |')
  pages = '\n'.join(f'method_{name}' for name in names)
  toc = f'```{{toctree}}\n:hidden:\n\n{pages}\n```'
  return '\n'.join((*lines, '', toc)) + '\n'


def _method(name):
  """The docstring of a method, part by part, and its pieces."""
  lines = [f'# {name}', '', methods.summary(name), '']
  for part, text in methods.parts(name).items():
    if part == 'Command':
      lines += ['**Command.**', '', f'```sh\n{text}\n```', '']
    elif part == 'Pieces':
      lines += ['**Pieces.**', '']
      method = configuration.load_method(name)
      lines += [
        f'- `{path.split(".")[0]}`: {_piece_link(piece)}'
        for path, piece in method.pieces()
      ]
      lines.append('')
    else:
      lines += [f'**{part}.** {_escaped(text)}', '']
  return '\n'.join(lines)


def _piece_link(piece):
  """A piece with its constants, linked to its family where it has a page."""
  folder = type(piece).__module__.split('.')[2:3]
  text = f'`{show(piece)}`'
  if folder and folder[0] in FAMILIES:
    anchor = type(piece).__name__.lower()
    return f'[{text}](pieces_{folder[0]}.md#{anchor})'
  return text


def _family(family, title, used):
  """Every piece of a folder: its docstring, fields and methods."""
  lines = [f'# {title}', '']
  face = importlib.import_module(f'rl_jax.pieces.{family}')
  lines += [_escaped((face.__doc__ or '').strip()), '']
  for info in sorted(pkgutil.iter_modules(face.__path__), key=lambda i: i.name):
    module = importlib.import_module(f'{face.__name__}.{info.name}')
    for cls in _public_classes(module):
      lines += _piece(cls, used)
  return '\n'.join(lines)


def _public_classes(module):
  return [
    cls
    for name, cls in vars(module).items()
    if isinstance(cls, type)
    and cls.__module__ == module.__name__
    and dataclasses.is_dataclass(cls)
    and not name.startswith('_')
  ]


def _piece(cls, used):
  """One piece: formula and source, defaults, methods that list it."""
  text = inspect.cleandoc(cls.__doc__ or '')
  lines = [f'## {cls.__name__}', '', '```text', text, '```', '']
  fields = [
    f'`{f.name}` = `{_default(f)}`' for f in dataclasses.fields(cls) if f.init
  ]
  if fields:
    lines += [f'Fields: {", ".join(fields)}.', '']
  by = [name for name, classes in used.items() if cls.__name__ in classes]
  if by:
    links = ', '.join(f'[{name}](method_{name}.md)' for name in by)
    lines += [f'Methods: {links}.', '']
  file = cls.__module__.replace('.', '/')
  lines += [f'In `{file}.py`.', '']
  return lines


def _default(field):
  if field.default is not dataclasses.MISSING:
    return repr(field.default)
  if field.default_factory is not dataclasses.MISSING:
    return repr(field.default_factory())
  return 'required'


def _configuration():
  """Every section of a configuration, field by field."""
  lines = [
    '# Configuration',
    '',
    'Sections of `ExperimentConfig`. `--set=PATH=VALUE` changes a field, for',
    'example `--set=rollout.group_size=16`.',
    '',
  ]
  for path in SECTIONS:
    module, name = path.rsplit('.', 1)
    cls = getattr(importlib.import_module(module), name)
    lines += [f'## {name}', '', _escaped(_first_paragraphs(cls)), '']
    lines += ['| field | type | default |', '|---|---|---|']
    for field in dataclasses.fields(cls):
      kind = re.sub(r'[\w.]+\.(\w+)', r'\1', str(_type_of(field)))
      default = textwrap.shorten(_default(field), 60, placeholder=' ...')
      cells = (field.name, kind, default)
      cells = (f'`{cell.replace("|", "or")}`' for cell in cells)
      lines.append(f'| {" | ".join(cells)} |')
    lines.append('')
  return '\n'.join(lines)


def _type_of(field):
  kind = field.type
  return kind.__name__ if isinstance(kind, type) else kind


def _first_paragraphs(cls):
  return inspect.cleandoc(cls.__doc__ or '').split('\n\n')[0]


def _escaped(text):
  """Text as Markdown that shows it as it is."""
  return re.sub(r'([*_<>\[\]$`])', r'\\\1', text)


if __name__ == '__main__':
  write()
