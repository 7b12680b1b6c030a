"""How the large programs are compiled."""

import jax
import jax.numpy as jnp
import pytest

from rl_jax import compilation

LEVEL = 'xla_backend_optimization_level'


@pytest.mark.parametrize(
  'backend, flags, expected',
  [
    ('cpu', '', {LEVEL: 1}),
    ('cpu', '--xla_dump_to=x', {LEVEL: 1}),
    ('cpu', f'--{LEVEL}=3', None),
    ('gpu', '', None),
  ],
)
def test_the_level_of_llvm(monkeypatch, backend, flags, expected):
  monkeypatch.setattr(jax, 'default_backend', lambda: backend)
  monkeypatch.setenv('XLA_FLAGS', flags)
  assert compilation.options() == expected


def test_the_compiler_takes_the_options(monkeypatch):
  """A name that it does not know would be an error."""
  monkeypatch.delenv('XLA_FLAGS', raising=False)
  double = jax.jit(lambda x: 2 * x, compiler_options=compilation.options())
  assert double(jnp.ones(())) == 2
