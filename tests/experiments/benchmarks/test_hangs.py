"""The rows of the benchmark of hangs."""

import pytest

from experiments.benchmarks import hangs


@pytest.mark.parametrize('workers', ['process', 'asyncio'])
def test_a_hang_ends_with_its_process(workers):
  """Three rows, of which one hangs in every second round; none is left."""
  found = hangs.measured(workers, 3, 1, limit=0.5, seconds=0.01)
  assert found['gone_after'] > 0.4 and found['left'] == 0
  assert found['others_ratio'] > 0
