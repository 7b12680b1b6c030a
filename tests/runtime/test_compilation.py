"""The large programs are compiled, kept and logged."""

import logging
import re

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


@pytest.fixture
def caches(monkeypatch, tmp_path):
  """A folder of caches, and a process whose programs are not kept yet."""
  before = jax.config.jax_compilation_cache_dir
  monkeypatch.delenv('JAX_COMPILATION_CACHE_DIR', raising=False)
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
  jax.config.update('jax_compilation_cache_dir', None)
  yield tmp_path
  jax.config.update('jax_compilation_cache_dir', before)


@pytest.mark.parametrize(('name', 'kept'), [('tpu', True), ('cpu', False)])
def test_programs_of_accelerators_are_kept(caches, name, kept):
  compilation.keep_programs(Platform(name))
  expected = str(caches / 'rl_jax' / 'programs') if kept else None
  assert jax.config.jax_compilation_cache_dir == expected
  assert (caches / 'rl_jax' / 'programs').is_dir() == kept


@pytest.mark.parametrize('folder', ['elsewhere', ''])
def test_the_choice_of_the_user_stands(caches, monkeypatch, folder):
  """An empty variable keeps nothing."""
  monkeypatch.setenv('JAX_COMPILATION_CACHE_DIR', folder)
  compilation.keep_programs(Platform('cuda', (9, 0)))
  assert jax.config.jax_compilation_cache_dir is None
  assert not list(caches.iterdir())


def test_a_folder_that_cannot_be_made_is_a_warning(caches, caplog):
  (caches / 'rl_jax').write_text('a file')
  with caplog.at_level(logging.WARNING, logger='absl'):
    compilation.keep_programs(Platform('tpu'))
  assert 'compiled programs are not kept' in caplog.text
  assert jax.config.jax_compilation_cache_dir is None


def test_long_compilations_are_logged_with_their_program(monkeypatch, caplog):
  """JAX names the function in the event of its compilation."""
  compilation.log_programs()
  monkeypatch.setattr(compilation, 'LOGGED_SECONDS', 0.0)

  def scored(x):
    return x * 3.25 - 7

  with caplog.at_level(logging.INFO, logger='absl'):
    jax.jit(scored)(1.0)
  assert re.search(r'compiled \S*scored\S* in \d+ s', caplog.text)
  monkeypatch.setattr(compilation, 'LOGGED_SECONDS', 100.0)
  caplog.clear()
  with caplog.at_level(logging.INFO, logger='absl'):
    jax.jit(lambda x: x - 2.75)(1.0)
  assert 'compiled' not in caplog.text
