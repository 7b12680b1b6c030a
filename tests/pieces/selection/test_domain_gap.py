"""RuleReasoner: shares of domains by hand and what they select."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import selection
from rl_jax.pieces.piece import CheckContext

KEY = jax.random.key(0)


def at(share, size=12, **fields):
  """A selector and a state with these shares."""
  selector = selection.DomainGap(domains=len(share), **fields)
  return selector, {**selector.init(size), 'share': jnp.asarray(share)}


def domains(found, count):
  """The number of prompts of each domain that were drawn."""
  return np.bincount(np.asarray(found) % count, minlength=count).tolist()


def test_one_batch_by_hand(observed):
  """Means .2 and .8 of goal 1: gaps .8 and .2, e^(.6 / .3) = 7.389056 to 1."""
  selector, state = at([0.5, 0.5], memory=1, every=1)
  reward = [[0.2, 0.2], [0.8, 0.8]]
  state = selector.observe(state, np.arange(2), observed(reward))
  np.testing.assert_allclose(state['share'], [0.880797, 0.119203], rtol=1e-5)


def test_older_batches_count_less(observed):
  """Goal (1 + 1/2) / 2 = .75. Means (1 + 2/2) / 4 = .5 and (2 + 1/2) / 4 =
  .625: gaps .25 and .125, e^(.125 / .3) = 1.516890 to 1."""
  selector, state = at([0.5, 0.5], memory=2, every=2)
  state = selector.observe(state, np.arange(2), observed([[1, 1], [0, 1]]))
  np.testing.assert_array_equal(state['share'], [0.5, 0.5])
  state = selector.observe(state, np.arange(2), observed([[1, 0], [1, 1]]))
  np.testing.assert_allclose(state['share'], [0.602685, 0.397315], rtol=1e-5)
  assert not state['rewards'].any() and not state['samples'].any()


def test_defaults_by_hand(observed):
  """Goal (1 + 1/2 + 1/3 + 1/4) / 4 = .520833; of eight batches the last four
  are kept, in which domain 1 has mean .520833 and no gap: e^(.520833 / .3)."""
  selector, state = at([0.5, 0.5])
  for batch in range(8):
    before = state
    right = float(batch >= 4)
    state = selector.observe(state, np.arange(2), observed([[0], [right]]))
    if batch < 7:
      np.testing.assert_array_equal(state['share'], [0.5, 0.5])
  assert before['samples'].sum() == 8
  expected = 1 / (1 + np.exp(-0.5208333 / 0.3))
  np.testing.assert_allclose(state['share'][0], expected, rtol=1e-5)


def test_goal_and_temperature_by_hand(observed):
  """Goal .5: gaps .3 and 0; e^(.3 / .6) = 1.648721 to 1."""
  selector, state = at([0.5, 0.5], memory=1, every=1, goal=0.5, tau=0.6)
  state = selector.observe(state, np.arange(2), observed([[0.2], [0.8]]))
  np.testing.assert_allclose(state['share'][0], 0.622459, rtol=1e-5)


def test_without_a_gap_shares_are_equal(observed):
  """E0: of equal rewards, of a goal of 0, of rewards above the goal."""
  for goal, reward in ((1.0, [0.3, 0.3]), (0.0, [0.0, 1.0]), (0.5, [1.0, 0.6])):
    selector, state = at([0.9, 0.1], memory=1, every=1, goal=goal)
    state = selector.observe(
      state, np.arange(2), observed(np.array([reward]).T)
    )
    np.testing.assert_array_equal(state['share'], [0.5, 0.5])


def test_failed_and_absent_do_not_count(observed):
  """NaN is not a sample; a domain without any counts as unsolved."""
  selector, state = at([0.5, 0.5], memory=1, every=1)
  found = selector.observe(
    state, np.arange(2), observed([[0.2, np.nan], [0.8] * 2])
  )
  np.testing.assert_allclose(found['share'][0], 0.880797, rtol=1e-5)
  for ids, reward in (([1], [[0.4]]), ([0, 1], [[np.nan], [0.4]])):
    found = selector.observe(state, np.asarray(ids), observed(reward))
    expected = 1 / (1 + np.exp(-0.4 / 0.3))
    np.testing.assert_allclose(found['share'][0], expected, rtol=1e-5)
  nobody = selector.observe(state, np.arange(2), observed([[np.nan], [np.nan]]))
  np.testing.assert_array_equal(nobody['share'], [0.5, 0.5])


def test_order_does_not_matter(observed):
  """E1: of prompts and of samples."""
  selector, state = at([0.25] * 4, memory=1, every=1)
  reward = np.array([[1, 0, 0.5], [0, 0, 0.25], [1, 1, 0], [0, 1, 1]])
  one = selector.observe(state, np.arange(4), observed(reward))
  back = selector.observe(
    state, np.arange(4)[::-1], observed(reward[::-1, ::-1])
  )
  np.testing.assert_allclose(one['share'], back['share'], rtol=1e-6)


@pytest.mark.parametrize(
  'share, count, expected',
  [
    ([0.6, 0.4], 7, [5, 2]),  # 4.2 and 2.8: the seventh is of the heaviest
    ([0.4, 0.6], 7, [2, 5]),
    ([0.3, 0.4, 0.3], 7, [2, 3, 2]),  # 2.1, 2.8, 2.1
    ([0.35, 0.3, 0.35], 8, [3, 2, 3]),  # 2.8, 2.4, 2.8: two more
    ([1 / 3] * 3, 6, [2, 2, 2]),
    ([0.0, 1.0], 4, [0, 4]),
    ([0.1, 0.9], 10, [4, 6]),  # there are six of each: others fill the batch
  ],
)
def test_quotas_by_hand(share, count, expected):
  selector, state = at(share)
  found, _ = selector.select(state, KEY, count)
  assert domains(found, len(share)) == expected
  assert len(set(found.tolist())) == count


def test_first_shares_are_those_of_the_prompts():
  """Eight prompts of three domains: 3, 3 and 2."""
  state = selection.DomainGap(domains=3).init(8)
  np.testing.assert_allclose(state['share'], [0.375, 0.375, 0.25])


def test_every_prompt_of_a_domain_comes_before_one_returns():
  """Six of each: three batches of two a domain are all of them."""
  selector, state = at([0.5, 0.5])
  seen = []
  for _ in range(3):
    found, state = selector.select(state, KEY, 4)
    seen += found.tolist()
  assert sorted(seen) == list(range(12))
  again, _ = selector.select(state, KEY, 4)
  assert sorted(again.tolist()) != sorted(seen[:4])  # in another order


def test_what_cannot_be_drawn_is_named():
  """Domains without prompts, and a batch of more than there are."""
  with pytest.raises(ValueError, match='domains = 3: the task has 2 prompts'):
    selection.DomainGap(domains=3).init(2)
  selector, state = at([0.5, 0.5])
  with pytest.raises(ValueError, match='batch of 13 prompts cannot be drawn'):
    selector.select(state, KEY, 13)


def test_domains_that_a_skipped_prompt_shifts_are_refused():
  """They are refused as levels are."""

  class Usable(list):
    split = 'train'
    example_id = list.__getitem__

  selector = selection.DomainGap(domains=3)
  selector.check(CheckContext(prompts=Usable([0, 1, 2])))
  with pytest.raises(ValueError, match='DomainGap reads the level of a prompt'):
    selector.check(CheckContext(prompts=Usable([0, 2, 3])))


def test_parts_of_a_mixture_are_domains(observed):
  """Two prompts of part 0 and four of part 1; shares 0.75 and 0.25 of four."""
  selector = selection.DomainGap(by='part', memory=1, every=1)
  selector = selector.with_parts((2, 4))
  state = selector.init(6)
  np.testing.assert_allclose(state['share'], [1 / 3, 2 / 3], rtol=1e-6)
  found, _ = selector.select(state | {'share': jnp.array([0.5, 0.5])}, KEY, 4)
  assert (np.sort(np.asarray(found)) < 2).sum() == 2
  state = selector.observe(
    state, np.array([1, 5]), observed([[0.2, 0.2], [0.8, 0.8]])
  )
  np.testing.assert_allclose(state['share'], [0.880797, 0.119203], rtol=1e-5)


def test_parts_of_one_prompt_each_are_places(observed):
  """E0: the reduction."""
  places, state = at([0.5, 0.5], size=2, memory=1, every=1)
  parts = selection.DomainGap(by='part', memory=1, every=1).with_parts((1, 1))
  other = parts.init(2)
  reward = observed([[0.1], [0.9]])
  first, second = (
    x.observe(y, np.arange(2), reward)
    for x, y in ((places, state), (parts, other))
  )
  np.testing.assert_array_equal(first['share'], second['share'])


def test_parts_need_a_mixture():
  class Prompts:
    task = None

  selector = selection.DomainGap(by='part')
  with pytest.raises(ValueError, match="by = 'part' needs a tasks.Mixture"):
    selector.check(CheckContext(prompts=Prompts()))
  with pytest.raises(ValueError, match=r'sizes = \(1, 2\): the task has 4'):
    selector.with_parts((1, 2)).init(4)
