"""A run that cannot learn ends with the reason."""

import pytest

from rl_jax.runs import guards

FAILED = 'error: Traceback ...\n  File "x.py"\nKeyError: \'gold\'\n'


def test_three_iterations_without_a_judged_sample_end_a_run():
  """One judged sample, or an iteration without samples, starts again."""
  count = guards.check_judged([FAILED] * 4, 0)
  count = guards.check_judged([FAILED] * 4, count)
  assert count == 2
  assert guards.check_judged([FAILED, None], count) == 0
  assert guards.check_judged([], count) == 0
  with pytest.raises(guards.StopRunError, match="judged.*: KeyError: 'gold'"):
    guards.check_judged([FAILED] * 4, count)


def test_a_run_does_not_end_well_without_a_judged_sample():
  """The last iteration needs one; a judged sample, or no sample at all, is
  fine.
  """
  guards.check_end(guards.why_unjudged([FAILED, None]))
  guards.check_end(guards.why_unjudged([]))
  with pytest.raises(guards.StopRunError, match="last.*: KeyError: 'gold'"):
    guards.check_end(guards.why_unjudged([FAILED] * 2))
