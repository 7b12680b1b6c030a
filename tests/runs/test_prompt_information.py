"""Responses tell something about their prompts."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.measures.exploitability import log_probs
from rl_jax.measures.prompt_information import (
  Draws,
  PromptInformation,
  information,
  make_scores,
  tokens_before,
)
from rl_jax.models.tokenizer import ByteTokenizer, CharTokenizer
from rl_jax.overrides import override
from rl_jax.runs.policy import load
from rl_jax.runtime import mesh as mesh_lib

RNG = np.random.default_rng(0)
LOGP_RN = RNG.normal(scale=3, size=(6, 3)) - 9
OWN_R = np.array([0, 0, 1, 1, 2, 2])
LENGTH_R = np.array([3, 1, 4, 1, 5, 9])


@pytest.fixture(scope='module')
def mesh():
  """One device."""
  return mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])


def test_two_prompts_by_hand():
  """Own -1, other -5: log 2 - log(1 + e^-4) = .675 of .693.

  Of two tokens: -.5 and -2.5 each, log 2 - log(1 + e^-2) = .566.
  """
  found = information([[-1.0, -5.0], [-5.0, -1.0]], [0, 1], [2, 2])
  assert found == pytest.approx(
    {
      'information': 0.674997,
      'information_limit': 0.693147,
      'entropy': 1.0,
      'retrieval': 1.0,
      'retrieval_by_chance': 0.5,
      'information_per_token': 0.566219,
      'entropy_per_token': 0.5,
    },
    abs=1e-6,
  )


def test_rows_differ_by_hand():
  """Mixtures are of the prompts of a row: (.674997 + log 2 - log(1 + 1/e)) / 2.

  Lengths 1 and 2: the second row's difference is 1/2 a token,
  log 2 - log(1 + e^-.5) = .219070; entropies 1 and 2, a token 1 and 1. The
  second of three responses is not retrieved: e^-3 against e^-2.
  """
  logp_RN = [[-1.0, -5.0], [-3.0, -2.0]]
  found = information(logp_RN, [0, 1], [1, 2])
  assert found['information'] == pytest.approx(0.527441, abs=1e-6)
  assert found['information_per_token'] == pytest.approx(0.447033, abs=1e-6)
  assert (found['entropy'], found['entropy_per_token']) == (1.5, 1.0)
  found = information([*logp_RN, logp_RN[1]], [0, 0, 1], [1, 2, 2])
  assert found['retrieval'] == pytest.approx(2 / 3)


def test_responses_that_name_their_prompt_reach_the_limit():
  """log N, also where the others cannot write them."""
  for other in (-1e4, -np.inf):
    logp_RN = np.where(np.eye(4) > 0, -2.0, other)
    found = information(logp_RN, np.arange(4), np.ones(4))
    assert found['information'] == pytest.approx(np.log(4))
    assert found['information'] == pytest.approx(found['information_limit'])
    assert found['information_per_token'] == pytest.approx(np.log(4))
    assert found['retrieval'] == 1.0


def test_a_policy_that_ignores_its_prompt_has_none():
  """0, and retrieval by chance, however diverse its responses are."""
  logp_RN = np.repeat(LOGP_RN[:, :1], 3, axis=1)
  found = information(logp_RN, OWN_R, LENGTH_R)
  assert found['information'] == pytest.approx(0.0, abs=1e-12)
  assert found['information_per_token'] == pytest.approx(0.0, abs=1e-12)
  assert found['retrieval'] == pytest.approx(found['retrieval_by_chance'])
  assert found['entropy'] == pytest.approx(-LOGP_RN[:, 0].mean())


def test_order_changes_nothing():
  """The order of prompts and responses; ties are shared between prompts."""
  logp_RN = LOGP_RN.copy()
  logp_RN[0, 1] = logp_RN[0].max()
  logp_RN[0, 0] = logp_RN[0, 1]
  expected = information(logp_RN, OWN_R, LENGTH_R)
  column = np.array([2, 0, 1])  # new place -> old
  row = RNG.permutation(6)
  found = information(
    logp_RN[row][:, column], np.argsort(column)[OWN_R[row]], LENGTH_R[row]
  )
  assert found == pytest.approx(expected)
  again = information(
    np.tile(logp_RN, (2, 1)), np.tile(OWN_R, 2), np.tile(LENGTH_R, 2)
  )
  assert again == pytest.approx(expected)


def test_a_prompt_without_responses_is_left_out():
  """Its column is that of nobody; with one prompt there is nothing to tell."""
  more_RN = np.insert(LOGP_RN, 1, 0.0, axis=1)
  found = information(more_RN, np.array([0, 2, 3])[OWN_R], LENGTH_R)
  assert found == pytest.approx(information(LOGP_RN, OWN_R, LENGTH_R))
  with pytest.raises(ValueError, match='responses to 1 prompts, it needs 2'):
    information(LOGP_RN[:2], OWN_R[:2], LENGTH_R[:2])


def test_every_row_is_scored_under_every_prompt(tiny, mesh):
  """The model's log-probs at the temperature, of the mask's tokens only."""
  traj, params = tiny.rollout(), tiny.params()
  mask_BT = traj.mask_BT.at[0, 2:].set(0.0)  # tokens that do not count
  traj = traj.replace(mask_BT=mask_BT)
  prompts = traj.prompt_NP, traj.prompt_mask_NP
  with jax.set_mesh(mesh):
    scores = make_scores(tiny.CFG, mesh, tiny.TEMPERATURE)
    found_NB = scores(params, traj, *prompts)

  def on(x, mask):
    return np.asarray(x)[np.asarray(mask) > 0].tolist()

  contexts = [on(*pair) for pair in zip(*prompts, strict=True)]
  actions = [on(*pair) for pair in zip(traj.response_BT, mask_BT, strict=True)]
  expected = log_probs(
    params,
    tiny.CFG,
    [x for x in contexts for _ in actions],
    actions * len(contexts),
    tiny.TEMPERATURE,
  )
  np.testing.assert_allclose(found_NB.ravel(), expected, rtol=1e-4, atol=1e-5)


def test_of_two_policies(make_config, toy, mesh):
  """Without weights: entropy log V a token, information 0, chance.

  Decided ones of a random model tell their prompts apart. Eight prompts in
  batches of three: what fills a batch does not count.
  """
  config = make_config(toy.get_method('grpo'))
  draws = Draws(num_samples=2, batch_prompts=3)
  with jax.set_mesh(mesh):
    policy = load(config.model, config.task, 0, mesh)
    measure = PromptInformation(
      config, policy.model, policy.tokenizer, mesh, draws
    )
    found = measure(jax.tree.map(jnp.zeros_like, policy.params))
    model = policy.params['model']
    decided = {**model, 'embed': 50 * model['embed']}
    other = measure({**policy.params, 'model': decided})
  assert (found['num_prompts'], found['num_responses']) == (8, 16)
  assert found['information'] == pytest.approx(0.0, abs=1e-5)
  assert found['information_limit'] == np.log(8)
  assert found['retrieval'] == pytest.approx(1 / 8)
  each = np.log(policy.model.vocab_size)
  assert found['entropy_per_token'] == pytest.approx(each, rel=1e-5)
  assert each < found['entropy'] <= 2 * each * 1.00001
  assert other['entropy_per_token'] < 0.01
  assert 2.07 < other['information'] <= other['information_limit']
  assert other['retrieval'] == 1.0


@pytest.mark.slow
def test_tokens_until_a_text(make_config, toy, mesh):
  """The first of two tokens, in rows whose second one is 'a', 1 of V. Several
  batches, and more prompts than there are.

  Several batches, and more prompts than there are.
  """
  config = make_config(toy.get_method('grpo'))
  draws = Draws(num_prompts=9, num_samples=64, batch_prompts=5, until='a')
  with jax.set_mesh(mesh):
    policy = load(config.model, config.task, 0, mesh)
    found = PromptInformation(
      config, policy.model, policy.tokenizer, mesh, draws
    )(jax.tree.map(jnp.zeros_like, policy.params))
  V = policy.model.vocab_size
  assert found['entropy'] == pytest.approx(np.log(V), rel=1e-5)
  assert found['entropy_per_token'] == pytest.approx(np.log(V), rel=1e-5)
  expected = 8 * 64 * (V - 2) / V**2  # the first one is neither 'a' nor the end
  assert 0.5 < found['num_responses'] / expected < 1.5
  assert found['information'] == pytest.approx(0.0, abs=1e-5)


def test_tokens_before_a_text():
  """Whole tokens, by their bytes; control tokens by their id."""
  tokenizer = CharTokenizer('ab;')
  ids = tokenizer.encode('abb;a;')
  assert tokens_before(tokenizer, ids, ';') == 3
  assert tokens_before(tokenizer, ids, 'b;') == 2
  assert tokens_before(tokenizer, ids, 'a') == 0
  assert tokens_before(tokenizer, ids, ';;') == 0
  ids = ByteTokenizer().encode('é!')
  assert tokens_before(ByteTokenizer(), ids, '!') == 2
  with pytest.raises(ValueError, match='until is empty'):
    tokens_before(tokenizer, ids, '')

  class Joined:
    """'<e>' is a control token, 7; tokens 1 and 2 are two letters."""

    token_bytes = (b'', b'ab', b'c;')

    def encode(self, text, control=False):
      """Control tokens have ids from 7 on."""
      if control and '<e>' in text:
        return [7] * (1 if text == '<e>' else 2)
      return [1]

  assert tokens_before(Joined(), [1, 2, 7, 1], '<e>') == 2
  assert tokens_before(Joined(), [1, 2], '<e>') == 0
  assert tokens_before(Joined(), [1, 2, 7], 'c') == 1
  assert tokens_before(Joined(), [1, 2], ';') == 1  # the token has more
  with pytest.raises(ValueError, match='control token and more'):
    tokens_before(Joined(), [1], '<e> ')


@pytest.mark.parametrize(
  ('changes', 'error'),
  [
    ({'split': 'dev'}, "split 'dev' is none of train"),
    ({'until': ''}, 'until is empty'),
    (
      {'num_samples': 2**31 - 1},
      r'batch_prompts \* num_samples = 8',
    ),
  ],
)
def test_wrong_draws_are_errors_before_compilation(
  make_config, toy, mesh, changes, error
):
  """Nothing of the model is needed to see them."""
  config = make_config(toy.get_method('grpo'))
  tokenizer = CharTokenizer(config.task.alphabet)
  model = config.model.config
  with pytest.raises(ValueError, match=error):
    PromptInformation(config, model, tokenizer, mesh, Draws(**changes))
  with pytest.raises(ValueError, match=r'Draws.num_prompts = 1 is outside'):
    Draws(num_prompts=1)
  short = dataclasses.replace(model, max_positions=2)
  with pytest.raises(ValueError, match='1 tokens and responses of 2, but'):
    PromptInformation(config, short, tokenizer, mesh, Draws())
  one = override(config, 'task.num_contexts', '1')
  with pytest.raises(ValueError, match="1 prompts in split 'train'"):
    PromptInformation(one, model, tokenizer, mesh, Draws())
