"""How the large programs are compiled."""

import jax
import jax.numpy as jnp
import pytest

from rl_jax.runtime import compilation
from rl_jax.runtime.platform import Platform

LEVEL = 'xla_backend_optimization_level'
EMITTERS = 'xla_cpu_use_fusion_emitters'
FORMER = {EMITTERS: False} if jax.__version_info__ < (0, 11) else {}
BOTH = {LEVEL: 1, **FORMER}


@pytest.mark.parametrize(
  'platform, flags, options, training',
  [
    ('cpu', '', {LEVEL: 1}, BOTH),
    ('cpu', '--xla_dump_to=x', {LEVEL: 1}, BOTH),
    ('cpu', f'--{LEVEL}=3', None, FORMER or None),
    ('cpu', f'--{EMITTERS}=true', {LEVEL: 1}, {LEVEL: 1}),
    ('cuda', '', None, None),
  ],
)
def test_options_unless_flags_say_others(
  monkeypatch, platform, flags, options, training
):
  monkeypatch.setenv('XLA_FLAGS', flags)
  assert compilation.options(Platform(platform)) == options
  assert compilation.training_options(Platform(platform)) == training


def test_the_compiler_takes_the_options(monkeypatch):
  """A name that it does not know would be an error."""
  monkeypatch.delenv('XLA_FLAGS', raising=False)
  options = compilation.training_options(Platform())
  double = jax.jit(lambda x: 2 * x, compiler_options=options)
  assert double(jnp.ones(())) == 2
