"""The acceptance head of SpecDec++, and when a draft stops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.decoding import SamplingConfig
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.sampling import sample_token


@pytest.mark.parametrize(
  ('f', 'threshold', 'least', 'proposed'),
  [
    (0.9, 0.3, 2, 5),  # 1 - 0.9^i = 0.1, 0.19, 0.271, 0.344
    (0.8, 0.3, 2, 3),
    (0.5, 0.3, 1, 2),
    (0.5, 0.3, 2, 3),  # the lower bound
    (0.5, 1.0, 1, 21),  # never: the upper bound
  ],
)
def test_the_stopping_rule_by_hand(f, threshold, least, proposed):
  """The token after the one that stops is drafted already."""
  drafted = 1
  while drafted <= 20 and not acceptance.stops(
    jnp.log(jnp.asarray([f])) * drafted, jnp.int32(drafted), threshold, least
  ):
    drafted += 1
  assert drafted + (drafted <= 20) == proposed


def test_the_loss_by_hand():
  """Rejected tokens count six times; masked ones do not."""
  head = acceptance.init_head(2, jax.random.key(0))
  head['out_D'] = jnp.asarray([1.0, 0.0])
  head['block_LDD'] = jnp.zeros((3, 2, 2))
  hidden = jnp.asarray([[np.log(3.0), 5.0], [0.0, 5.0], [9.0, 9.0]])
  loss = acceptance.head_loss(
    head, hidden, jnp.asarray([1.0, 0.25, 0.0]), jnp.asarray([1.0, 1.0, 0.0])
  )
  # f = 3/4 and 1/2; weights 1, and 1/4 + 6 * 3/4.
  expected = (-np.log(0.75) + 4.75 * np.log(2)) / (1 + 4.75)
  np.testing.assert_allclose(loss, expected, rtol=1e-6)
  # A residual block adds silu(W x + b).
  head['bias_LD'] = head['bias_LD'].at[0, 0].set(1.0)
  found = acceptance.log_accept(head, jnp.zeros((1, 2)))
  silu = 1 / (1 + np.exp(-1.0))
  np.testing.assert_allclose(found, [-np.log1p(np.exp(-silu))], rtol=1e-6)


@pytest.mark.slow
def test_a_head_learns_which_tokens_are_accepted(tiny, tmp_path):
  """From responses whose draft is the policy: all but the mixed ones."""
  traj = tiny.rollout()
  uniform_BT = jax.random.uniform(jax.random.key(1), traj.mask_BT.shape)
  rows = acceptance.training_rows(
    (tiny.CFG, tiny.params()),
    traj,
    SamplingConfig(),
    uniform_BT,
    jnp.zeros(traj.mask_BT.shape, bool),
  )
  hidden, accepted, mask = rows
  assert hidden.shape == (8 * 4, tiny.CFG.width)
  assert mask.sum() == traj.mask_BT[:, :-1].sum()
  assert 0 < (accepted * mask).sum() < mask.sum()
  head, loss_K = acceptance.fit_head(rows, jax.random.key(0), steps=100)
  assert loss_K[-1] < 0.7 * loss_K[0]
  path = str(tmp_path / 'head.npz')
  acceptance.save_head(path, head)
  same = acceptance.load_head(path, tiny.CFG.width)
  jax.tree.map(np.testing.assert_array_equal, dict(same), dict(head))
  with pytest.raises(ValueError, match='not an acceptance head .* width 3'):
    acceptance.load_head(path, 3)


def test_labels_of_rejection_by_hand(tiny):
  """E1: min(1, p / q) of the draft's tokens, from both softmaxes.

  With one model for both all are 1, where equality of other draws is not.
  """
  traj, own = tiny.rollout(), (tiny.CFG, tiny.params())
  other = tiny.CFG, tiny.params(1)
  uniform_BT = jax.random.uniform(jax.random.key(1), traj.mask_BT.shape)
  never_BT = jnp.zeros(traj.mask_BT.shape, bool)
  arguments = traj, SamplingConfig(temperature=0.7), uniform_BT, never_BT
  _, same, _ = acceptance.training_rows(own, *arguments, own)
  np.testing.assert_allclose(same, 1.0, atol=1e-6)
  _, found, _ = acceptance.training_rows(other, *arguments, own)

  def probs(model):
    cfg, params = model
    hidden = models.forward(
      params,
      cfg,
      traj.prompt_NP,
      traj.prompt_mask_NP,
      traj.response_BT,
      traj.mask_BT,
    )
    return jax.nn.softmax(models.logits(params, cfg, hidden) / 0.7)

  p_BTV, q_BTV = probs(own), probs(other)
  drawn_BT = jax.lax.map(
    lambda x: sample_token(jnp.log(x[0]), x[1])[0],
    (jnp.swapaxes(q_BTV, 0, 1), uniform_BT.T),
  ).T

  def pick(x_BTV):
    return jnp.take_along_axis(x_BTV, drawn_BT[..., None], -1)

  ratio_BT = jnp.minimum(pick(p_BTV) / pick(q_BTV), 1.0)[..., 0]
  np.testing.assert_allclose(
    found, ratio_BT[:, :-1].reshape(-1), rtol=1e-4, atol=1e-6
  )
  assert 0.02 < np.mean(np.asarray(found) < 1) < 1


@pytest.mark.parametrize('content', [b'', b'text', b'PK\x03\x04'])
def test_another_file_is_no_head(content, tmp_path):
  path = tmp_path / 'head.npz'
  path.write_bytes(content)
  with pytest.raises(ValueError, match='head.npz is not an .npz file'):
    acceptance.load_head(str(path), 3)
