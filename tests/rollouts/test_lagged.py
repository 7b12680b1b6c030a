"""Stale rollouts are sampled by the weights of earlier iterations."""

import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.overrides import override
from rl_jax.rollouts import lagged


@pytest.mark.parametrize('staleness', [0, 1, 2, 4])
def test_the_weights_of_iteration_k_minus_s_sample(staleness):
  """By hand: theta_k is the number k, made by 3 k optimizer steps."""
  params, step = 0, 0
  history = lagged.initial(staleness, params, step)
  for k in range(6):  # iterations done
    expected = max(0, k - staleness)
    found = lagged.sampler(history, params, step)
    assert found == (expected, 3 * expected)
    history = lagged.pushed(history, params, step)
    assert len(history) == staleness
    params, step = params + 1, step + 3


def test_what_cannot_be_stale_is_refused(toy):
  """Naming the field and what to set."""
  config = bandit.get_config(toy.get_method('tis'))
  stale = override(config, 'rollout.staleness', '2')
  with pytest.raises(ValueError, match='staleness = 2.*max_logp_gap = 1.0'):
    validate(stale)
  stale = override(stale, 'guards.max_logp_gap', 'null')
  validate(stale)
  logged = override(stale, 'rollout.recorded_prompts', '8')
  with pytest.raises(ValueError, match='staleness = 2, but all rows are data'):
    lagged.check(logged.rollout, None)
  with pytest.raises(ValueError, match=r'staleness = -1 is outside \[0'):
    override(config, 'rollout.staleness', '-1')
