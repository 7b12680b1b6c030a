"""Batches of episodes: memory, and the number of programs."""

import json

import pytest

from experiments.benchmarks import free_turns


@pytest.mark.slow
def test_batches_without_latency_have_few_programs():
  """Five at most; no clock is compared."""
  found = free_turns.line(
    '--part=latency --preset=world --groups=2 --batches=3'.split()
  )
  print(json.dumps(found))
  assert found['programs'] <= 5
  assert 0 <= found['host_share'] < 1 and found['tokens_a_second'] > 0


@pytest.mark.slow
def test_a_thousand_live_episodes_need_the_memory_that_is_planned():
  """The process grows by it; episodes are coroutines in 64 slots. No clock."""
  words = '--part=live --preset=world --episodes=1000 --few=64 --slots=64'
  found = free_turns.line([*words.split(), '--turns=4', '--tokens=8'])
  print(json.dumps(found))
  assert found['1000 episodes']['memory_ratio'] < 3
  assert found['1000 episodes']['tokens_a_second'] > 0
