"""Methods as their docstrings describe them, and what these have to say."""

import importlib
import re
import textwrap
from typing import Any

from experiments.flags import configuration
from experiments.tables.method_difference import show
from rl_jax.method import Method
from rl_jax.pieces.policies import Frozen

PACKAGE = 'configs.methods'

# The parts of a docstring, in this order, each with an example.
PARTS = {
  'Paper': 'Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System '
  'at Scale", 2025.',
  'Change': 'against GRPO, the upper clip is wider, no KL.',
  'Defaults': 'clip 0.2/0.28 (verl recipe, 32B).',
  'Pieces': 'GroupCenter(); GroupScale(eps=1e-06, ddof=1); TokenMean()',
  'Headline': 'unverified.',
  'Evidence': 'verified in code (verl recipe dapo).',
  'Command': 'python -m experiments.train '
  '--config=configs/worlds/arithmetic.py '
  '--method=dapo',
}
EVIDENCE = ('verified in code', 'read in paper', 'reconstructed')


def docstring(name: str) -> str:
  """The docstring of configs/methods/NAME.py."""
  return importlib.import_module(f'{PACKAGE}.{name}').__doc__ or ''


def summary(name: str) -> str:
  """The first line of the docstring, without 'NAME: '."""
  text = docstring(name).split('\n\n')[0]
  return ' '.join(text.split()).partition(': ')[2]


def parts(name: str) -> dict[str, str]:
  """Part -> text, each in one line, of the docstring of a method."""
  found = re.findall(
    r'^([A-Z][a-z ]+): (.*?)(?=^\S|\Z)', docstring(name), re.M | re.S
  )
  return {key: ' '.join(text.split()) for key, text in found}


def pieces(method: Method) -> str:
  """Every piece of a method with all its constants."""
  found: list[Any] = [piece for _, piece in method.pieces()]
  found += [p for p in (method.rollout, method.selector) if p is not None]
  if method.reference != Frozen():
    found.append(method.reference)
  return '; '.join(map(show, found))


def problems(name: str) -> list[str]:
  """The problems of a method's docstring, each with an example."""
  found, missing = parts(name), []
  if not (10 < len(summary(name)) < 100 and summary(name).endswith('.')):
    missing.append(
      'the first line must be NAME: what it is, in 10 to 100 characters that '
      'end with a full stop; for example\n'
      '    """DAPO: clip-higher, dynamic sampling, token mean."""'
    )
  for part, example in PARTS.items():
    if part not in found and part != 'Pieces':
      missing.append(f'a part is missing; for example\n{_part(part, example)}')
  if 'Evidence' in found and not any(e in found['Evidence'] for e in EVIDENCE):
    missing.append(f'Evidence must say one of: {", ".join(EVIDENCE)}')
  if not re.search(rf'--method={name}\b', found.get('Command', name)):
    missing.append(f'Command must name the method: --method={name}')
  expected = pieces(configuration.load_method(name))
  if found.get('Pieces') != expected:
    missing.append(
      'Pieces must list the pieces with all their constants. If no constant '
      f'was changed by mistake, write\n{_part("Pieces", expected)}'
    )
  return missing


def _part(part: str, text: str) -> str:
  """A part as a docstring has it, here indented by four."""
  lines = textwrap.wrap(
    f'{part}: {text}', 80, subsequent_indent='  ', break_long_words=False
  )
  return textwrap.indent('\n'.join(lines), '    ')
