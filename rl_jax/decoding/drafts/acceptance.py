"""The acceptance head of SpecDec++: it decides when a draft model stops.

Source: "SpecDec++: Boosting Speculative Decoding via Adaptive Candidate
Lengths" (2405.19715), constants of its released code.
"""

from typing import Any
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rl_jax import models
from rl_jax.decoding.sampling import (
  SamplingConfig,
  log_probs,
  sample_token,
)
from rl_jax.types import POLICY, Array, Trajectories

BLOCKS = 3
REJECTION_WEIGHT = 6.0  # of a rejected token in the loss
TRUE_FRACTION = 0.15  # of the inputs that are the target's tokens


def init_head(width: int, key: Array) -> dict[str, Array]:
  """Residual blocks that are identities, and an output of 0: f = 1/2."""
  weight = jax.random.normal(key, (BLOCKS, width, width)) * 1e-3
  return {
    'block_LDD': weight,
    'bias_LD': jnp.zeros((BLOCKS, width)),
    'out_D': jnp.zeros(width),
    'out': jnp.zeros(()),
  }


def log_accept(head: dict[str, Array], hidden_RD: Array) -> Array:
  """log f(h), [R]: f = sigmoid of a line in h after x + silu(W x + b), thrice.

  hidden: of drafted tokens, the last states of the draft model.
  """
  return jax.nn.log_sigmoid(_logit(head, hidden_RD))


def _logit(head, x_RD):
  x_RD = x_RD.astype(jnp.float32)
  for weight, bias in zip(head['block_LDD'], head['bias_LD'], strict=True):
    x_RD = x_RD + jax.nn.silu(x_RD @ weight + bias[None])
  return x_RD @ head['out_D'] + head['out']


def stops(
  log_accepted_W: Array, drafted: Array, threshold: float, least: int
) -> Array:
  """bool[W]: 1 - prod_{j <= i} f_j > threshold, after `least` tokens.

  log_accepted: sum of log f_j over the i drafted tokens so far. The token
  after them is drafted already and is kept: f_j = 0.9 and a threshold of 0.3
  stop at the fourth, so that five are verified.
  """
  return (-jnp.expm1(log_accepted_W) > threshold) & (drafted >= least)


def head_loss(
  head: dict[str, Array], hidden_RD: Array, accepted_R: Array, mask_R: Array
) -> Array:
  """sum m [a CE_1 + w (1 - a) CE_0] / sum m [a + w (1 - a)], w = 6.

  CE_1 = -log f, CE_0 = -log(1 - f); a: whether, or how probably, the target
  accepts a token.
  """
  logit_R = _logit(head, hidden_RD)
  rejected_R = REJECTION_WEIGHT * (1 - accepted_R) * mask_R
  accepted_R = accepted_R * mask_R
  loss_R = -accepted_R * jax.nn.log_sigmoid(logit_R)
  loss_R -= rejected_R * jax.nn.log_sigmoid(-logit_R)
  return loss_R.sum() / jnp.maximum((accepted_R + rejected_R).sum(), 1e-9)


def training_rows(
  draft: tuple[models.ModelConfig, Any],
  traj: Trajectories,
  sampling: SamplingConfig,
  uniform_BT: Array,
  true_BT: Array,
  policy: tuple[models.ModelConfig, Any] | None = None,
) -> tuple[Array, Array, Array]:
  """(hidden [R, D], accepted [R], mask [R]) of the target's responses in traj.

  The draft draws a token y for each place of a response; fed is that one, or
  where true_BT the target's, which has no label. uniform_BT: those that drew
  the responses, as draft and target share them; see randomness. policy: shape
  and parameters of the target, for coupling by rejection, with the label
  min(1, p(y) / q(y)); None: 1 where y is the target's token.
  """
  hidden_TBD = jnp.swapaxes(_states(draft, traj, traj.response_BT), 0, 1)

  def draw(state_and_uniform):
    hidden_BD, uniform_B = state_and_uniform
    logits = sampling.transform(models.logits(draft[1], draft[0], hidden_BD))
    return sample_token(logits, uniform_B, sampling.greedy)

  token_TB, logq_TB = jax.lax.map(draw, (hidden_TBD, uniform_BT.T))
  token_BT = token_TB.T
  if policy is None or sampling.greedy:
    accepted_BT = (token_BT == traj.response_BT).astype(jnp.float32)
  else:
    logp_BT = _log_probs(policy, traj, sampling, token_TB).T
    accepted_BT = jnp.exp(jnp.minimum(logp_BT - logq_TB.T, 0.0))
  mixed_BT = jnp.where(true_BT, traj.response_BT, token_BT)
  mask_BT = ((traj.kind_BT == POLICY) & ~true_BT).astype(jnp.float32)
  # The state t predicts token t: the state of a token is one further on.
  hidden_BTD = _states(draft, traj, mixed_BT)[:, 1:]
  return (
    hidden_BTD.reshape(-1, hidden_BTD.shape[-1]),
    accepted_BT[:, :-1].reshape(-1),
    mask_BT[:, :-1].reshape(-1),
  )


def _states(model, traj, token_BT):
  """States [B, T, D] of a model that predict the tokens of responses."""
  cfg, params = model
  prompts = traj.prompt_NP, traj.prompt_mask_NP
  return models.forward(params, cfg, *prompts, token_BT, traj.mask_BT)


def _log_probs(policy, traj, sampling, token_TB):
  """log p of tokens [T, B] after the beginnings of traj's responses."""

  def read(state_and_token):
    hidden_BD, token_B = state_and_token
    logits = models.logits(policy[1], policy[0], hidden_BD)
    return log_probs(sampling.transform(logits), token_B)

  hidden_TBD = jnp.swapaxes(_states(policy, traj, traj.response_BT), 0, 1)
  return jax.lax.map(read, (hidden_TBD, token_TB))


def fit_head(
  rows: tuple[Array, Array, Array],
  key: Array,
  *,
  steps: int = 300,
  learning_rate: float = 1e-3,
) -> tuple[dict[str, Array], Array]:
  """(the head after Adam steps on all rows, the loss of each step)."""
  optimizer = optax.adam(learning_rate)

  def step(carry, _):
    head, state = carry
    loss, gradient = jax.value_and_grad(head_loss)(head, *rows)
    updates, state = optimizer.update(gradient, state)
    return (optax.apply_updates(head, updates), state), loss

  head = init_head(rows[0].shape[1], key)
  (head, _), loss_K = jax.lax.scan(
    step, (head, optimizer.init(head)), length=steps
  )
  return head, loss_K


def save_head(path: str, head: dict[str, Array]) -> None:
  """Writes a head in the form of .npz, for DraftModel(head=path)."""
  arrays: dict[str, Any] = {name: np.asarray(x) for name, x in head.items()}
  with open(path, 'wb') as file:  # savez would append .npz to another name
    np.savez(file, **arrays)


def load_head(path: str, width: int) -> dict[str, np.ndarray]:
  """Reads what save_head wrote.

  Raises: ValueError if it is not a head of a model of this width.
  """
  try:
    with open(path, 'rb') as opened, np.load(opened) as file:
      head = {name: file[name] for name in file.files}
  except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
    raise ValueError(
      f'rollout.speculative.head: {path} is not an .npz file: {error}'
    ) from None
  wanted = jax.eval_shape(lambda: init_head(width, jax.random.key(0)))
  shapes = {name: x.shape for name, x in head.items()}
  if shapes != {name: x.shape for name, x in wanted.items()}:
    raise ValueError(
      f'rollout.speculative.head: {path} is not an acceptance head of a draft '
      f'model of width {width}: its arrays are {shapes}'
    )
  return head
