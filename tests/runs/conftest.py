"""Configurations and comparisons that several tests of runs share."""

import pytest

from configs import bandit
from rl_jax.overrides import override


@pytest.fixture(scope='session')
def make_config():
  """(method, **changes) -> the bandit without evaluation.

  Changes are overrides by path (__ for a dot). Rewards are computed in this
  process unless a test sets workers.
  """

  def make(method, **changes):
    config = bandit.get_config(method)
    own = {'evaluation__every': '0', 'verifier__num_workers': '0'}
    for path, text in {**own, **changes}.items():
      config = override(config, path.replace('__', '.'), text)
    return config

  return make


@pytest.fixture(scope='session')
def config(toy, make_config):
  """GRPO: groups, a reference, a KL term; evaluation and two checkpoints."""
  return make_config(
    toy.get_method('grpo'),
    iterations='40',
    evaluation__every='20',
    evaluation__num_samples='2',
  )


@pytest.fixture(scope='session')
def stripped():
  """Rows of metrics -> the same without what may differ between two runs."""

  def strip(rows):
    return [
      {k: v for k, v in row.items() if not k.startswith('time/')}
      for row in rows
    ]

  return strip
