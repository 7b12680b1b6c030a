"""Batches of prompts from a selector on the host."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import selection
from rl_jax.rollouts.host_selector import HostSelector

KEY = jax.random.key(0)


@pytest.mark.parametrize(
  'selector', [selection.ShuffledPass(), selection.Uniform()]
)
def test_batches_of_prompts_go_on(selector):
  """Successive batches differ, and a restored selector continues (E0)."""
  host = HostSelector(selector, 64, KEY)
  host.select(8)
  saved = host.state
  batches = [host.select(8).tolist() for _ in range(3)]
  assert len({tuple(b) for b in batches}) == 3
  again = HostSelector(selector, 64, KEY)
  again.state = saved
  assert [again.select(8).tolist() for _ in range(3)] == batches
  other = HostSelector(selector, 64, jax.random.key(1))
  other.state = saved
  assert other.select(8).tolist() != batches[0]


def test_a_pass_visits_every_prompt_once():
  """The default selector, over batches that do not divide the set."""
  host = HostSelector(selection.ShuffledPass(), 7, KEY)
  ids = np.concatenate([host.select(3) for _ in range(7)])
  np.testing.assert_array_equal(np.bincount(ids), np.full(7, 3))
  for start in range(0, 21, 7):
    assert sorted(ids[start : start + 7]) == list(range(7))
