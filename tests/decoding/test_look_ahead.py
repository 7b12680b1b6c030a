"""Search by a heuristic: against enumeration, beam search, greedy decoding."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding.beam_search import beam_search
from rl_jax.decoding.look_ahead import LookAheadConfig, look_ahead

N, T, END, WANTED = 2, 3, 4, 7
SAMPLING = decoding.SamplingConfig(eos_ids=(END,), greedy=True)
KEY = jax.random.key(0)


def count(inputs, response_BT, length_B):
  """The number of wanted tokens in a row, and a number; -inf for bad."""
  own_BT = jnp.arange(response_BT.shape[1])[None] < length_B[:, None]
  wanted_BT = own_BT & (response_BT == inputs['wanted'][:, None])
  bad_B = (own_BT & (response_BT == inputs['bad'][:, None])).any(1)
  h_B = wanted_BT.sum(1) + inputs['more']
  return jnp.where(bad_B, -jnp.inf, h_B)


def inputs_of(wanted=WANTED, bad=-1, more=0.0):
  def full(x, kind):
    return np.full(N, x, kind)

  return {
    'wanted': full(wanted, np.int32),
    'bad': full(bad, np.int32),
    'more': full(more, np.float32),
  }


@pytest.fixture(scope='module')
def empty(tiny):
  rng = np.random.default_rng(1)
  prompt_NP = rng.integers(5, tiny.CFG.vocab_size, (N, 2))
  return decoding.start_trajectories(
    prompt_NP,
    np.ones((N, 2)),
    np.arange(N),
    group_size=1,
    max_response_tokens=T,
  )


@functools.cache
def search(cfg, beams, candidates, tokens):
  """(params, traj, inputs, weight) -> trajectories."""
  return jax.jit(
    lambda params, traj, inputs, weight: look_ahead(
      params,
      cfg,
      traj,
      SAMPLING,
      count,
      inputs,
      weight=weight,
      search=LookAheadConfig(beams, candidates, tokens, max_new_tokens=T),
    )
  )


@functools.cache
def plain(cfg, beams):
  return jax.jit(
    lambda params, traj: beam_search(
      params, cfg, traj, KEY, SAMPLING, max_new_tokens=T, beams=beams
    )
  )


def same(found, expected):
  """E0 tokens, E1 log-probs."""
  for name in ('response_BT', 'length_B', 'finished_B', 'mask_BT'):
    a, b = getattr(found, name), getattr(expected, name)
    if name == 'response_BT':  # what follows the end does not matter
      a, b = a * found.mask_BT, b * expected.mask_BT
    np.testing.assert_array_equal(a, b)
  np.testing.assert_allclose(
    found.logp_behaviour_BT, expected.logp_behaviour_BT, rtol=1e-5, atol=1e-6
  )


def test_weight_0_is_beam_search(tiny, empty):
  """Also where h is -inf; with one beam and one candidate greedy decoding."""
  params = tiny.params(0)
  expected = plain(tiny.CFG, 2)(params, empty)
  found = search(tiny.CFG, 2, 3, 1)
  same(found(params, empty, inputs_of(), 0.0), expected)
  first = np.asarray(expected.response_BT[0, 0])
  same(found(params, empty, inputs_of(bad=first), 0.0), expected)


@pytest.mark.slow
def test_one_beam_and_one_candidate_are_greedy(tiny, empty):
  """Whatever the heuristic wants."""
  params = tiny.params(2)
  found = search(tiny.CFG, 1, 1, 0)(params, empty, inputs_of(), 9.0)
  same(found, plain(tiny.CFG, 1)(params, empty))


def test_a_number_added_to_h_changes_nothing(tiny, empty):
  """E0, at a weight at which h decides."""
  params, run = tiny.params(0), search(tiny.CFG, 2, 3, 1)
  found = run(params, empty, inputs_of(), 4.0)
  assert (
    found.response_BT != run(params, empty, inputs_of(), 0.0).response_BT
  ).any()
  same(run(params, empty, inputs_of(more=16.0), 4.0), found)


def test_h_of_minus_infinity_is_never_in_the_response(tiny, empty):
  """The likeliest first token is forbidden."""
  params, run = tiny.params(0), search(tiny.CFG, 2, 3, 1)
  likeliest = run(params, empty, inputs_of(), 0.0)
  for row in range(N):
    bad = int(likeliest.response_BT[row, 0])
    found = run(params, empty, inputs_of(bad=bad), 1.0)
    own = np.asarray(found.mask_BT[row]) > 0
    assert bad not in np.asarray(found.response_BT[row])[own]


def scripted(logp, reward, weight, beams, candidates, tokens):
  """The search in Python, for log-probs and rewards of tuples of tokens."""

  def over(row):
    return len(row) == T or (row and row[-1] == END)

  def total(row):
    return sum(logp[row[:i]][row[i]] for i in range(len(row)))

  def greedy(row):
    for _ in range(tokens):
      if not over(row):
        row = (*row, int(np.argmax(logp[row])))
    return row

  kept = [()]
  while not all(map(over, kept)):
    found = []
    for row in kept:
      likeliest = [] if over(row) else np.argsort(-logp[row])[:candidates]
      found += [(*row, int(v)) for v in likeliest] or [row]

    def score(row):
      return total(row) + weight * reward(greedy(row))

    kept = sorted(found, key=score, reverse=True)[:beams]
  return kept[0]


@pytest.mark.parametrize('weight', [0.5, 2.0])
def test_against_a_search_in_python(tiny, empty, weight):
  """E0 tokens: 2 beams, 3 candidates, 1 token ahead, by the trainer."""
  cfg, params = tiny.CFG, tiny.params(0)
  V = cfg.vocab_size
  every = np.array(list(itertools.product(range(V), repeat=2)), np.int32)
  every = np.pad(every, ((0, 0), (0, 1)))

  @jax.jit
  def compute(params):
    hidden = models.forward(
      params,
      cfg,
      empty.prompt_NP,
      empty.prompt_mask_NP,
      np.tile(every, (N, 1)),
      np.ones((N * len(every), T)),
    )
    weights = models.decoding_weights(params, cfg)
    return jax.nn.log_softmax(models.logits(weights, cfg, hidden))

  logp = np.asarray(compute(params)).reshape(N, V, V, T, V)
  found = search(cfg, 2, 3, 1)(params, empty, inputs_of(), weight)
  for row in range(N):
    table = {(): logp[row, 0, 0, 0]}
    table |= {(a,): logp[row, a, 0, 1] for a in range(V)}
    table |= {
      (a, b): logp[row, a, b, 2]
      for a, b in itertools.product(range(V), repeat=2)
    }
    best = scripted(table, lambda x: x.count(WANTED), weight, 2, 3, 1)
    length = int(found.length_B[row])
    assert tuple(np.asarray(found.response_BT[row, :length])) == best


def test_numbers_are_checked(tiny, empty):
  """Before anything is traced."""
  with pytest.raises(ValueError, match=r'candidates = 99 in \[1, 11\]'):
    search(tiny.CFG, 1, 99, 0)(tiny.params(0), empty, inputs_of(), 1.0)
