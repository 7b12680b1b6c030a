"""Summaries of rollouts that selectors observe."""

import numpy as np
import pytest

from rl_jax.types import GroupSummary


def _observed(rewards, right=0.0):
  """A summary with these rewards; lengths and entropies do not matter."""
  rewards = np.asarray(rewards, np.float32)

  def full(value):
    return np.full_like(rewards, value)

  return GroupSummary(
    reward_NG=rewards,
    right_NG=full(right),
    length_NG=full(np.nan),
    entropy_NG=full(np.nan),
  )


@pytest.fixture
def observed():
  """The summary of rewards [prompts, group]."""
  return _observed


@pytest.fixture
def wins():
  """Summaries of prompts with so many rewards of 1."""
  return lambda count, group=8, prompts=1: _observed(
    np.tile(np.arange(group) < count, (prompts, 1))
  )
