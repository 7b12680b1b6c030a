"""Freed memory is returned to the system after long compilations only."""

import ctypes

import jax
import pytest

from rl_jax.runtime import compilation, host_memory


class FakeLibrary:
  """A C library that counts, with or without the function."""

  def __init__(self):
    self.calls = []

  def malloc_trim(self, pad):
    self.calls.append(pad)


@pytest.fixture
def library(monkeypatch):
  """Replaces the C library and the list of listeners."""
  fake, listeners = FakeLibrary(), []
  monkeypatch.setattr(host_memory.sys, 'platform', 'linux')
  monkeypatch.setattr(ctypes, 'CDLL', lambda _: fake)
  monkeypatch.setattr(
    jax.monitoring,
    'register_event_duration_secs_listener',
    lambda f: listeners.append(f),
  )
  host_memory.give_back_after_compilations.cache_clear()
  yield fake, listeners
  host_memory.give_back_after_compilations.cache_clear()


def test_only_long_compilations_return_memory(library):
  fake, listeners = library
  host_memory.give_back_after_compilations()
  host_memory.give_back_after_compilations()
  (listen,) = listeners
  listen('/jax/core/compile/backend_compile_duration', 0.5)
  listen('/jax/core/compile/jaxpr_trace_duration', 5.0)
  assert not fake.calls
  listen('/jax/core/compile/backend_compile_duration', 5.0, more=1)
  assert fake.calls == [0]


def test_the_event_is_one_that_jax_reports():
  """If JAX renamed the event, no memory would be returned, without an error."""
  events = []
  jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: events.append(event)
  )
  jax.jit(lambda x: x * 17.25 - 3)(1.0)
  assert compilation.COMPILED in events


def test_another_c_library_is_left_alone(library, monkeypatch):
  _, listeners = library
  monkeypatch.setattr(ctypes, 'CDLL', lambda _: object())
  host_memory.give_back_after_compilations()
  assert not listeners
