"""Every kind of mutant of a small source, and that nothing else is touched."""

import importlib.util
import pathlib

SOURCE = '''
"""Docstring with 0.5."""
BOUND = 2.0

class Piece:
  coef: float = ranged(0.1, 0.0, open_low=True)
  role: ClassVar[str] = 'credit'

  def __post_init__(self):
    check_range(self, 'coef', 0.0, self.limit + 1.0)

  def __call__(self, x):
    assert_rank(x, 1)
    y = jnp.where(x > self.coef, -x, jnp.exp(x)).sum(axis=1)
    return jnp.minimum(y * 3, 1.0)
'''

EXPECTED = [
  'BOUND = 2.0: 2.0 -> 4.0',
  'coef: float = ranged(0.1, 0.0, open_low=True): 0.1 -> 0.2',
  'sum -> mean',
  'where',
  'x > self.coef -> x < self.coef',
  '-x -> x',
  'jnp.exp(x) -> x',
  'minimum -> maximum',
  'y * 3 -> y / 3',
  '3 -> 4',
  '1.0 -> 2.0',
]


def load():
  """The module beside this file."""
  path = pathlib.Path(__file__).with_name('mutants.py')
  spec = importlib.util.spec_from_file_location('mutants', path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def test_all_kinds():
  """All listed mutants, all different, each a separate program."""
  found = list(load().mutants(SOURCE))
  names = [mutant.name for mutant in found]
  assert len(set(names)) == len(names) == len(EXPECTED)
  for mutant in found:
    assert mutant.code('piece.py')
  joined = '\n'.join(names)
  for text in EXPECTED[:2] + EXPECTED[4:7] + EXPECTED[8:]:
    assert text in joined
  assert 'jnp.maximum(y * 3, 1.0)' in joined
  assert 'jnp.where(x > self.coef, jnp.exp(x), -x)' in joined


def test_parts_of_a_method_vanish():
  """Each element of a tuple argument; numbers of its pieces change."""
  source = 'm = Method(credit=(Center(), Scale(eps=1e-6)), losses=(L(),))'
  names = [mutant.name for mutant in load().mutants(source)]
  assert [name.split('-> ')[1] for name in names] == [
    'credit=(Scale(eps=1e-06),)',
    'credit=(Center(),)',
    '2e-06',
    'losses=()',
  ]
