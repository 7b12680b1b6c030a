"""MoPPS: the posterior by hand and what it selects."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import selection

KEY = jax.random.key(0)


def test_posterior_by_hand(wins):
  """decay .5: s = 1/4 of 8 gives 1 + 2 and 1 + 6; then s = 1/2 gives 1.5 + .5 +
  4 and 3.5 + .5 + 4. Other prompts keep the prior."""
  selector = selection.BetaPosterior()
  state = selector.observe(selector.init(3), np.array([1]), wins(2))
  np.testing.assert_allclose(state['a'], [1, 3, 1])
  np.testing.assert_allclose(state['b'], [1, 7, 1])
  state = selector.observe(state, np.array([1]), wins(4))
  np.testing.assert_allclose([state['a'][1], state['b'][1]], [6, 8])


def test_prior_and_bounds_by_hand(observed):
  """a0 = 2, b0 = 3, decay .5. Rewards 3, -1, .5, 0 count as 1, 0, .5, 0: 1.5 of
  4, so a = 1 + 1 + 1.5 and b = 1.5 + 1.5 + 2.5."""
  selector = selection.BetaPosterior(prior_success=2.0, prior_failure=3.0)
  rewards = np.array([[3.0, -1.0, 0.5, 0.0]], np.float32)
  state = selector.observe(selector.init(1), np.array([0]), observed(rewards))
  np.testing.assert_allclose([state['a'][0], state['b'][0]], [3.5, 5.5])


def test_fixed_point(wins):
  """a0 + n s / (1 - decay) = 1 + 16 s for a constant s = 3/4."""
  selector = selection.BetaPosterior()
  state = selector.init(1)
  for _ in range(40):
    state = selector.observe(state, np.array([0]), wins(6))
  np.testing.assert_allclose([state['a'][0], state['b'][0]], [13, 5], rtol=1e-5)


def test_failed_verifications_do_not_count(observed):
  """NaN is not a loss: 1 success of 2 known."""
  selector = selection.BetaPosterior(decay=1.0)
  rewards = np.array([[1.0, np.nan, 0.0, np.nan]], np.float32)
  state = selector.observe(selector.init(1), np.array([0]), observed(rewards))
  np.testing.assert_allclose([state['a'][0], state['b'][0]], [2, 2])


def test_success_may_be_what_is_right(observed):
  """Rewards of .2, all right: 4 successes of 4 instead of .8."""
  rewards = [[0.2, 0.2, 0.2, 0.2]]
  for success, expected in (('reward', [1.8, 4.2]), ('right', [5.0, 1.0])):
    selector = selection.BetaPosterior(success=success)
    state = selector.init(1)
    state = selector.observe(state, np.array([0]), observed(rewards, right=1.0))
    np.testing.assert_allclose([state['a'][0], state['b'][0]], expected)


def sharp_state(selector, rates):
  """A posterior that knows the rates to about 1%."""
  rates = jnp.asarray(rates, jnp.float32)
  return {**selector.init(len(rates)), 'a': 4e3 * rates, 'b': 4e3 * (1 - rates)}


def test_the_nearest_to_the_target_are_drawn():
  """.45, .5 and .55 of eight known rates; target .9 takes the others."""
  rates = [0.05, 0.5, 0.95, 0.45, 0.1, 0.55, 0.9, 0.2]
  selector = selection.BetaPosterior()
  ids, _ = selector.select(sharp_state(selector, rates), KEY, 3)
  assert sorted(ids.tolist()) == [1, 3, 5]
  selector = selection.BetaPosterior(target=0.9)
  ids, _ = selector.select(sharp_state(selector, rates), KEY, 2)
  assert sorted(ids.tolist()) == [2, 6]


def test_the_band_draws_inside_at_random():
  """Rates .4 and .6 lie in [.3, .7], .1 and .9 do not; all inside are drawn
  sooner or later."""
  rates = [0.1, 0.4, 0.9, 0.6, 0.1, 0.4]
  selector = selection.BetaPosterior(rule='band')
  select = jax.jit(selector.select, static_argnums=2)
  state, seen = sharp_state(selector, rates), set()
  for _ in range(20):
    ids, state = select(state, KEY, 2)
    seen |= set(ids.tolist())
  assert seen == {1, 3, 5}
  state = sharp_state(selector, [0.1, 0.99, 0.8, 0.9, 0.05])  # none inside
  ids, after = select(state, KEY, 1)
  assert ids.tolist() == [2]
  assert int(after['batches']) == 1


def test_a_band_of_everything_is_a_uniform_draw():
  """E0: all 64 candidates lie in [0, 1], so the first four of the random order
  are drawn, as if there were no others."""

  def drawn(candidate_ratio, prompts):
    selector = selection.BetaPosterior(
      rule='band', low=0.0, high=1.0, candidate_ratio=candidate_ratio
    )
    select = jax.jit(selector.select, static_argnums=2)
    return select(selector.init(prompts), KEY, 4)[0]

  np.testing.assert_array_equal(drawn(16, 64), drawn(1, 64))


def test_one_candidate_each_is_a_uniform_draw():
  """The posterior decides nothing: every prompt of six is drawn, none twice in
  a batch, and the batches differ although the key is that of the run."""
  selector = selection.BetaPosterior(candidate_ratio=1)
  state, batches = sharp_state(selector, [0.5] + [0.01] * 5), []
  for _ in range(20):
    ids, state = selector.select(state, KEY, 3)
    assert len(set(ids.tolist())) == 3
    batches.append(tuple(sorted(ids.tolist())))
  counts = np.bincount(np.ravel(batches), minlength=6)
  assert (counts > 2).all() and len(set(batches)) > 5


def test_state_survives_a_save(wins):
  """E0: 2 N = N, save, restore, N."""
  selector = selection.BetaPosterior(candidate_ratio=2)
  state = half = selector.init(12)
  for step in range(4):
    ids, state = selector.select(state, KEY, 3)
    state = selector.observe(state, ids, wins(2 * step, prompts=3))
    if step == 2:
      half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
    again, half = selector.select(half, KEY, 3)
    half = selector.observe(half, again, wins(2 * step, prompts=3))
  np.testing.assert_array_equal(ids, again)
  jax.tree.map(np.testing.assert_array_equal, state, half)


def test_errors_name_the_field():
  """More prompts than there are, and a rule that is none."""
  selector = selection.BetaPosterior()
  with pytest.raises(ValueError, match='6 prompts .* from 5'):
    selector.select(selector.init(5), KEY, 6)
  with pytest.raises(ValueError, match='BetaPosterior.rule'):
    selection.BetaPosterior(rule='middle')
