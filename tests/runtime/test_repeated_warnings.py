"""A warning that repeats is counted."""

from rl_jax.runtime.repeated_warnings import RepeatedWarnings


def test_a_repeated_warning_is_said_once_then_counted(caplog):
  """The 1st and the 10th of 25 are logged; another text has its own count."""
  warnings = RepeatedWarnings()
  for i in range(25):
    warnings.warn('kept %d groups', i)
  warnings.warn('another')
  assert [record.getMessage() for record in caplog.records] == [
    'kept 0 groups (later ones are only counted)',
    'kept 9 groups (10 times so far)',
    'another (later ones are only counted)',
  ]
