"""Fields that all methods of a comparison have."""

import pytest

from experiments.tools import compare_methods


def test_fields_are_read():
  sets = ['iterations=3', 'method.losses.PPOClip.clip_low=0.1', 'a=b=c']
  assert compare_methods.common_fields(sets) == {
    'iterations': '3',
    'method.losses.PPOClip.clip_low': '0.1',
    'a': 'b=c',
  }


@pytest.mark.parametrize(
  ('sets', 'message'),
  [
    (['iterations'], '--set=iterations: expected --set=PATH=VALUE'),
    (['iterations=1', 'iterations=2'], '--set=iterations=... has two values'),
    (['seed=7'], '--set=seed=7: --seeds says which'),
    (['method=dapo'], '--set=method=dapo: --methods says which'),
  ],
)
def test_fields_that_would_be_lost_are_errors(sets, message):
  """A seed was replaced by those of --seeds, a first value by the second."""
  with pytest.raises(ValueError, match=message):
    compare_methods.common_fields(sets)


def test_the_baseline_is_compared_with_others():
  """By itself it would be run for a table that is an error."""
  found = compare_methods.methods(['dapo', 'grpo'], 'grpo')
  assert found == ['grpo', 'dapo']
  with pytest.raises(ValueError, match='--methods=grpo: expected .* other'):
    compare_methods.methods(['grpo'], 'grpo')
