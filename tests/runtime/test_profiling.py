"""The window of iterations that is traced."""

import jax
import pytest

from rl_jax.runtime import profiling


def test_a_window_is_read():
  """Both ends are included."""
  assert profiling.parse_window('10:13', 0, 60) == profiling.Window(10, 13)
  assert profiling.parse_window('60:60', 59, 60) == profiling.Window(60, 60)


@pytest.mark.parametrize(
  'text', ['', '10', '10:', '10-13', 'a:b', '0:3', '13:10', '50:61', '4:9']
)
def test_a_bad_window_is_refused(text):
  """Naming the text and what is allowed; 4 iterations are done already."""
  with pytest.raises(ValueError, match='--profile') as error:
    profiling.parse_window(text, 4, 60)
  assert text in str(error.value)
  assert 'FIRST' in str(error.value)


def test_the_trace_spans_its_iterations(monkeypatch):
  """Started before the first, ended after the last; none without a window."""
  calls = []
  monkeypatch.setattr(jax.profiler, 'start_trace', lambda d: calls.append(d))
  monkeypatch.setattr(jax.profiler, 'stop_trace', lambda: calls.append('stop'))
  for window in (None, profiling.Window(2, 3)):
    profiler = profiling.Profiler(window, 'directory')
    for number in range(1, 5):
      assert profiler.run(lambda n=number: calls.append(n) or n, number)
    profiler.close()
  assert calls == [1, 2, 3, 4, 1, 'directory', 2, 3, 'stop', 4]


def test_the_trace_of_a_run_that_ends_early_is_written(monkeypatch):
  """Once: by a signal, a limit of time or a metric that has its target."""
  calls = []
  monkeypatch.setattr(jax.profiler, 'start_trace', calls.append)
  monkeypatch.setattr(jax.profiler, 'stop_trace', lambda: calls.append('stop'))
  profiler = profiling.Profiler(profiling.Window(1, 3), 'directory')
  profiler.run(lambda: None, 1)
  profiler.close()
  profiler.close()
  assert calls == ['directory', 'stop']


def test_compilations_are_counted():
  """One for a new shape, none for an old one."""
  function = jax.jit(lambda x: x * 3 + 1)
  x, y = jax.numpy.zeros(3), jax.numpy.zeros(4)
  before = profiling.compilations()
  function(x), function(x)
  assert profiling.compilations() == before + 1
  function(y)
  assert profiling.compilations() == before + 2
