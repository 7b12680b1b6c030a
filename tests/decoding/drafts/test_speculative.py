"""Speculative decoding draws the tokens of plain decoding (E2), or their law.

Drafts of a model are coupled by rejection: tokens then depend on the draft, and
their distribution is that of the policy.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.drafts.settings import (
  DraftModel,
  PreviousResponses,
  PromptLookup,
)
from rl_jax.decoding.drafts.speculative import (
  NOTHING as NONE,
)
from rl_jax.decoding.drafts.speculative import (
  DraftSource,
  Kept,
  generate_with_drafts,
  no_responses,
  recalled,
  remembered,
  repeated,
)
from rl_jax.decoding.generate import Limits
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.types import ENVIRONMENT

CFG = presets.small(
  vocab_size=17, num_layers=1, width=16, num_heads=4, head_size=4, mlp_size=24
)
N, G, P, T = 4, 4, 5, 24
KEY = jax.random.key(1)
SAMPLING = decoding.SamplingConfig(eos_ids=(2,), temperature=0.5)
LOOKUP = PromptLookup(tokens=3, ngram=2)


@functools.cache
def make_params(cfg=CFG):
  return params_lib.init_params(cfg, jax.random.key(0))


@functools.cache
def expected_rows():
  return plain(SAMPLING, max_new_tokens=T)


def make_traj():
  """Prompts of two lengths; rows with given tokens, and a finished one."""
  rng = np.random.default_rng(5)
  mask_NP = np.ones((N, P))
  mask_NP[1:3, :2] = 0
  traj = decoding.start_trajectories(
    rng.integers(4, CFG.vocab_size, (N, P)),
    mask_NP,
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )
  given_B = jnp.arange(N * G) % 7
  given_BT = jnp.arange(T)[None] < given_B[:, None]
  return traj.replace(
    response_BT=jnp.where(given_BT, 5, 0),
    kind_BT=jnp.where(given_BT, ENVIRONMENT, 0),
    length_B=given_B,
    finished_B=jnp.arange(N * G) == 6,
  )


def plain(sampling, cfg=CFG, **limits):
  """A separate function: jit would find the program of other widths again."""

  def run(*args):
    return decoding.generate(args[0], cfg, *args[1:], **limits)

  return jax.jit(run)(make_params(cfg), make_traj(), KEY, sampling)


def speculative(sampling, drafts=LOOKUP, cfg=CFG, **limits):
  """(rows, passes, tokens), with an empty memory."""

  def run(*args):
    return generate_with_drafts(
      args[0],
      cfg,
      *args[1:],
      Kept({}),
      source=DraftSource(drafts),
      limits=Limits(**{'max_new_tokens': T, **limits}),
    )

  found = jax.jit(run)(make_params(cfg), make_traj(), KEY, sampling)
  return found[0], *found[2].tolist()[:2]


def assert_same(found, expected):
  """E2 for tokens, 1e-5 nats for their log-probs."""
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B', 'mask_BT'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  np.testing.assert_allclose(
    found.logp_behaviour_BT, expected.logp_behaviour_BT, atol=1e-5
  )


@pytest.mark.parametrize(
  'sampling',
  [
    SAMPLING,
    SAMPLING.replace(greedy=True),
    pytest.param(
      SAMPLING.replace(
        transforms=(decoding.TopK(k=5), decoding.TopP(p=0.9)), temperature=1.0
      ),
      marks=pytest.mark.slow,
    ),
  ],
)
def test_tokens_are_those_of_plain_decoding(sampling):
  """E2: sampled, greedy, transformed; given tokens and a finished row."""
  expected = plain(sampling, max_new_tokens=T)
  found, passes, tokens = speculative(sampling)
  assert_same(found, expected)
  drawn = np.asarray(expected.mask_BT).sum()
  first = (np.asarray(make_traj().length_B) == 0).sum()  # after the prompt
  assert tokens == drawn - first
  assert passes < tokens, 'the case must accept some drafts'


@pytest.mark.slow
def test_slots_stop_texts_and_limits(monkeypatch):
  """E2: rows wait, narrow, end by a text of two tokens or by their limit."""
  table_SV = np.zeros((2, 18), np.int16)
  table_SV[:, 5] = 1  # after 5 comes ...
  table_SV[1, 9] = ~0  # ... 9: the text is whole
  sampling = SAMPLING.replace(stop_SV=table_SV)
  expected = plain(sampling, max_new_tokens=9)
  by_text_B = np.asarray(expected.finished_B) & (
    np.asarray(expected.response_BT)[range(N * G), expected.length_B - 1] == 9
  )
  assert by_text_B.any()
  monkeypatch.setattr(decode, 'batch_widths', lambda *_: [5, 2])
  found, _, _ = speculative(sampling, max_new_tokens=9, slots=5)
  assert_same(found, expected)


@pytest.mark.slow
def test_wide_batches_get_one_token_a_step(monkeypatch):
  """most_rows: E2, and a token for each pass where the batch is wider."""
  monkeypatch.setattr(decode, 'batch_widths', lambda *_: [N * G, 4])
  found, passes, tokens = speculative(
    SAMPLING, PromptLookup(tokens=3, ngram=2, most_rows=4)
  )
  assert_same(found, expected_rows())
  _, fewer, same = speculative(SAMPLING)
  assert same == tokens and fewer < passes <= tokens


@pytest.mark.slow
def test_a_draft_longer_than_the_responses():
  """E2: it is cut to what fits into the cache."""
  found, _, _ = speculative(SAMPLING, PromptLookup(tokens=64, ngram=1))
  assert_same(found, expected_rows())


@pytest.mark.slow
def test_windows_and_capped_scores():
  """E2: layers that see the last tokens only."""
  cfg = dataclasses.replace(
    CFG, num_layers=2, window=3, windowed=(0,), attention_cap=2.0
  )
  found, *_ = speculative(SAMPLING, cfg=cfg)
  assert_same(found, plain(SAMPLING, cfg, max_new_tokens=T))


def test_a_known_response_is_accepted_whole():
  """A greedy response that recurs: K + 1 tokens a pass, up to its end."""
  drafts = PreviousResponses(tokens=3, ngram=8, prompts=N)
  sampling = SAMPLING.replace(greedy=True, eos_ids=())
  start = decoding.start_trajectories(
    make_traj().prompt_NP,
    make_traj().prompt_mask_NP,
    np.arange(N),
    group_size=1,
    max_response_tokens=T,
  )
  params, memory, counts = make_params(), no_responses(N, T), []

  @jax.jit
  def run(memory):
    return generate_with_drafts(
      params,
      CFG,
      start,
      KEY,
      sampling,
      Kept(memory),
      source=DraftSource(drafts),
      limits=Limits(T),
    )

  for _ in range(2):
    found, memory, count_3 = run(memory)
    counts.append(count_3.tolist())
  np.testing.assert_array_equal(memory['response_MT'], found.response_BT)
  assert counts[1][1] == N * (T - 1)
  passes, tokens, drafted = counts[1]
  assert passes < tokens <= passes + drafted
  # 23 tokens, 4 a pass; the beginning is found by the prompt's last token.
  assert counts[1][0] == N * 6 < counts[0][0]


@functools.cache
def draft_model():
  """The policy with weights that are a little different, and its shape."""
  params = make_params()

  def noise(x):
    return 0.03 * jax.random.normal(jax.random.key(7), x.shape)

  return CFG, jax.tree.map(lambda x: x + noise(x), params)


def with_model(sampling, params, traj=None, slots=None, **fields):
  """(rows, passes, tokens) with drafts of a model."""
  drafts, own = DraftModel(path='', **fields), make_params()

  def run(params, traj, *args):
    return generate_with_drafts(
      own,
      CFG,
      traj,
      KEY,
      *args,
      Kept({}, params),
      source=DraftSource(drafts, CFG),
      limits=Limits(T, slots),
    )

  found = jax.jit(run)(params, traj or make_traj(), sampling)
  return found[0], *found[2].tolist()[:2]


@pytest.mark.slow
def test_a_draft_model():
  """E2; drafts by the policy itself are all accepted: K + 1 tokens a pass."""
  found, passes, tokens = with_model(
    SAMPLING, make_params(), tokens=3, threshold=1.0
  )
  assert_same(found, expected_rows())
  # Less than 4 where a row ends, and where tokens were given.
  new_B = np.asarray(found.mask_BT.sum(axis=1))
  first_B = np.asarray(make_traj().length_B) == 0
  assert tokens == (new_B - first_B).sum()
  least = np.ceil((new_B - first_B) / 4).sum()
  assert least <= passes <= least + N * G


@pytest.mark.slow
@pytest.mark.parametrize('sampling', [SAMPLING, SAMPLING.replace(greedy=True)])
def test_a_draft_model_that_stops(sampling):
  """E2: another model, which stops by its own probabilities or by a head.

  With one number for both, and if greedy, tokens are those of plain decoding.
  """
  _, params = draft_model()
  expected = plain(sampling, max_new_tokens=T)
  head = acceptance.init_head(CFG.width, jax.random.key(0))
  found = {}
  for name, tree, threshold in (
    ('never', params, 1.0),
    ('own', params, 0.3),
    ('head', {**params, 'head': head}, 0.3),
  ):
    rows, passes, tokens = with_model(
      sampling,
      tree,
      tokens=6,
      threshold=threshold,
      least=1,
      coupling='rejection' if sampling.greedy else 'uniform',
    )
    assert_same(rows, expected)
    found[name] = tokens / passes
  # The untrained head gives 1/2: two tokens are verified, one more is drawn.
  # Where nothing is guessed, 0 is fed, which may be right as well.
  assert 1 < found['head'] < 3.5
  assert min(found.values()) > 1


def test_rejection_depends_on_counters_alone(monkeypatch):
  """E2: slots, widths and the order of groups change no token, nor their logp.

  The log-probs are the policy's: those of the same tokens by its softmax.
  """
  _, params = draft_model()
  fields = {'tokens': 3, 'threshold': 0.4, 'least': 1}
  whole, passes, tokens = with_model(SAMPLING, params, **fields)
  assert passes < tokens
  with monkeypatch.context() as patch:
    patch.setattr(decode, 'batch_widths', lambda *_: [5, 2])
    found, *_ = with_model(SAMPLING, params, slots=5, **fields)
  assert_same(found, whole)
  groups = np.array([2, 0, 3, 1])
  moved = toy_order(make_traj(), groups)
  found, *_ = with_model(SAMPLING, params, moved, **fields)
  assert_same(found, toy_order(whole, groups))
  hidden = models.forward(
    make_params(),
    CFG,
    whole.prompt_NP,
    whole.prompt_mask_NP,
    whole.response_BT,
    (whole.kind_BT > 0).astype(jnp.float32),
  )
  logits = models.logits(make_params(), CFG, hidden) / SAMPLING.temperature
  logp_BT = jnp.take_along_axis(
    jax.nn.log_softmax(logits), whole.response_BT[..., None], axis=-1
  )[..., 0]
  np.testing.assert_allclose(
    whole.logp_behaviour_BT, logp_BT * whole.mask_BT, atol=1e-4
  )


def toy_order(traj, groups):
  """Groups in another order."""
  rows = (groups[:, None] * G + np.arange(G)).ravel()

  def one(x):
    return x[rows] if x.shape[0] == N * G else x[groups]

  return jax.tree.map(one, traj)


OWN, OTHER = np.array([0.1, 0.3, 0.2, 0.4]), np.array([0.4, 0.1, 0.3, 0.2])


def constant(p):
  """(shape, parameters) of a model with these probabilities everywhere."""
  cfg = dataclasses.replace(CFG, vocab_size=len(p), tied_embeddings=False)
  params = jax.tree.map(jnp.zeros_like, params_lib.init_params(cfg, KEY))
  model = params['model']
  # The only state is all ones, by the norm of embeddings of ones.
  model['embed'] += 1.0
  model['final_norm'] += 1.0
  model['lm_head'] = model['lm_head'].at[0].set(np.log(p))
  return cfg, params


@pytest.mark.parametrize(
  ('coupling', 'kept'),
  [
    ('rejection', 0.1 + 0.1 + 0.2 + 0.2),  # sum of min(p, q)
    # Where the intervals of a token in both cumulative sums overlap: 0 to .1,
    # nothing, .5 to .6 and .8 to 1.
    ('uniform', 0.1 + 0.0 + 0.1 + 0.2),
  ],
)
def test_guesses_that_are_kept(coupling, kept):
  """The share in 8,192 rows of three tokens, and the law of all tokens.

  The first token has no guess. One of the second that is kept saves the pass
  for the third: passes = rows (2 - kept), with a standard error of .0055.
  """
  rows, (cfg, params), (_, other) = 8192, constant(OWN), constant(OTHER)
  start = decoding.start_trajectories(
    np.ones((1, 1)),
    np.ones((1, 1)),
    np.zeros(1),
    group_size=rows,
    max_response_tokens=3,
  )
  drafts = DraftModel(path='', tokens=1, threshold=1.0, coupling=coupling)
  found, _, (passes, tokens, drafted) = generate_with_drafts(
    params,
    cfg,
    start,
    KEY,
    decoding.SamplingConfig(),
    Kept({}, other),
    source=DraftSource(drafts, cfg),
    limits=Limits(3),
  )
  assert tokens == 2 * rows and drafted == passes
  np.testing.assert_allclose(2 - int(passes) / rows, kept, atol=0.02)
  response_BT = np.asarray(found.response_BT)
  counts = np.bincount(response_BT @ np.array([16, 4, 1]), minlength=64)
  expected = rows * np.einsum('i,j,k->ijk', OWN, OWN, OWN).ravel()
  statistic = ((counts - expected) ** 2 / expected).sum()
  # 63 degrees of freedom: mean 63, standard deviation 11.2.
  assert expected.min() > 5 and statistic < 63 + 3 * 11.2
  np.testing.assert_allclose(
    found.logp_behaviour_BT, np.log(OWN)[response_BT], atol=1e-5
  )


def test_a_token_without_probability_is_never_kept():
  """The policy gives it none, though the draft draws nothing else; and
  reversed.
  """
  sure = [np.array([1.0, 1e-30]), np.array([1e-30, 1.0])]
  for own, other in (sure, sure[::-1]):
    cfg, params = constant(own)
    start = decoding.start_trajectories(
      np.ones((1, 1)),
      np.ones((1, 1)),
      np.zeros(1),
      group_size=64,
      max_response_tokens=4,
    )
    found, *_ = generate_with_drafts(
      params,
      cfg,
      start,
      KEY,
      decoding.SamplingConfig(),
      Kept({}, constant(other)[1]),
      source=DraftSource(DraftModel(path='', tokens=3, threshold=1.0), cfg),
      limits=Limits(4),
    )
    np.testing.assert_array_equal(found.response_BT, int(own[1] > 0.5))


@pytest.mark.parametrize(
  ('text', 'ngram', 'expected'),
  [
    ([7, 8, 9, 4, 7, 8], 2, [9, 4, 7]),
    ([7, 8, 9, 5, 8, 4, 7, 8], 2, [9, 5, 8]),  # the longer match
    ([7, 8, 9, 5, 8, 4, 7, 8], 1, [4, 7, 8]),  # the last one
    ([7, 7], 3, [7, 7, 7]),  # it repeats itself
    ([7, 8, 7, 8], 2, [7, 8, 7]),
    ([NONE, 8, NONE, 4, 8], 2, [NONE, 4, 8]),  # nothing equals nothing
  ],
)
def test_lookup_by_hand(text, ngram, expected):
  """Tokens after the end are not read."""
  context_WC = jnp.asarray([[*text, 8, 8, 8]])
  found = repeated(context_WC, jnp.asarray([len(text)]), ngram, 3)
  assert found[0].tolist() == expected


def test_memory_of_prompts():
  """The first row of each group, up to its length; the last of one place."""
  traj = make_traj().replace(prompt_id_N=jnp.asarray([0, 5, 3, 9]))
  traj = traj.replace(
    response_BT=jnp.arange(N * G * T).reshape(-1, T),
    length_B=jnp.full(N * G, 2),
  )
  memory = jax.tree.map(jnp.asarray, no_responses(4, T))
  memory = remembered(memory, traj)
  assert memory['id_M'].tolist() == [0, 9, NONE, 3]
  found = recalled(memory, jnp.asarray([9, 5, 3, 2]))

  def first(n):
    return [n * G * T, n * G * T + 1]

  assert found[:, :2].tolist() == [first(3), [NONE] * 2, first(2), [NONE] * 2]
  assert (found[:, 2:] == NONE).all()


@pytest.mark.slow
@pytest.mark.parametrize(
  'drafts',
  [
    PromptLookup(tokens=2, ngram=1),
    DraftModel(path='', tokens=2, threshold=1.0),
    DraftModel(path='', tokens=2, threshold=0.6, least=1),
  ],
)
def test_the_law_of_tokens(drafts):
  """Chi-square of 8,192 triples against the products of the model's softmax."""
  cfg, rows = dataclasses.replace(CFG, vocab_size=5), 8192
  params = make_params(cfg)

  def begun(group_size):
    return decoding.start_trajectories(
      np.asarray([[1, 4, 1, 3]]),
      np.ones((1, 4)),
      np.zeros(1),
      group_size=group_size,
      max_response_tokens=3,
    )

  def noise(x):
    return jax.random.normal(jax.random.key(7), x.shape)

  found, _, (passes, tokens, _) = generate_with_drafts(
    params,
    cfg,
    begun(rows),
    KEY,
    decoding.SamplingConfig(),
    Kept({}, jax.tree.map(lambda x: x + noise(x), params)),
    source=DraftSource(drafts, cfg),
    limits=Limits(3),
  )
  assert tokens == 2 * rows and passes < 0.95 * tokens
  first, second = np.divmod(np.arange(25), 5)
  response_BT = jnp.asarray(np.stack([first, second, 0 * first], axis=1))
  traj = begun(25)
  hidden = models.forward(
    params,
    cfg,
    traj.prompt_NP,
    traj.prompt_mask_NP,
    response_BT,
    jnp.ones((25, 3)),
  )
  p = np.asarray(jax.nn.softmax(models.logits(params, cfg, hidden)))
  by_token = p[np.arange(25), 0, first] * p[np.arange(25), 1, second]
  expected = rows * (by_token[:, None] * p[:, 2]).ravel()
  number = np.asarray(found.response_BT) @ np.asarray([25, 5, 1])
  counts = np.bincount(number, minlength=125)
  statistic = ((counts - expected) ** 2 / expected).sum()
  assert expected.min() > 5
  # 124 degrees of freedom: mean 124, standard deviation 15.7.
  assert statistic < 124 + 3 * 15.7
