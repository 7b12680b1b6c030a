"""Losses of recorded rows under a model, and steps of its output layer."""

from collections.abc import Callable, Mapping
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.data.recorded import RecordedSet, recorded_rows
from rl_jax.learning import statistics
from rl_jax.learning.hidden_states import states_before
from rl_jax.learning.statistics import Forward
from rl_jax.models import heads, transformer
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.statistics.greedy_gap import GreedyGap
from rl_jax.types import Array, Trajectories

Loaded = tuple[transformer.ModelConfig, Any, Any]  # model, params, tokenizer


def row_losses(
  model: transformer.ModelConfig, params: Any, traj: Trajectories
) -> dict[str, Array]:
  """nll: the mean of -log p over the trained tokens of each row, tokens: their
  number; each [B], in nats.
  """
  nll_BT, count_B = _token_losses(model, params, traj)
  return {'nll': nll_BT.sum(1) / jnp.maximum(count_B, 1), 'tokens': count_B}


def _token_losses(model, params, traj):
  """(-log p [B, T], 0 where nothing is trained; trained tokens [B])."""
  hidden_BTD = states_before(Forward(model=model), params, traj)

  def one(row):  # a row at a time: no [B, T, V] exists
    hidden_TD, token_T = row
    logp_TV = jax.nn.log_softmax(heads.logits(params, model, hidden_TD))
    return -jnp.take_along_axis(logp_TV, token_T[:, None], axis=1)[:, 0]

  nll_BT = jax.lax.map(one, (hidden_BTD, traj.response_BT))
  trained_BT = traj.mask_BT > 0
  return jnp.where(trained_BT, nll_BT, 0.0), trained_BT.sum(1)


def output_gradients(
  model: transformer.ModelConfig, params: Any, traj: Trajectories
) -> dict[str, Array]:
  """inner: <g, W>, square: |g|^2 of each row, for its mean loss, each [B].

    <g, W> = (1/T) sum_t (E_{p_t}[z_t] - z_t[y_t])
    |g|^2 = (1/T^2) sum_{t,s} <p_t - e_{y_t}, p_s - e_{y_s}> <h_t, h_s>

  W: output layer, of which tied embeddings count as that only; z_t = W h_t, p_t
  the softmax of z_t. One forward pass and no copy of W.
  """
  hidden_BTD = states_before(Forward(model=model), params, traj)

  def one(row):
    hidden_TD, token_T, mask_T = row
    logits_TV = heads.logits(params, model, hidden_TD)
    error_TV = jax.nn.softmax(logits_TV) - jax.nn.one_hot(
      token_T, logits_TV.shape[-1]
    )
    error_TV = error_TV * (mask_T / jnp.maximum(mask_T.sum(), 1))[:, None]
    hidden_TD = hidden_TD.astype(jnp.float32)
    gram_TT = (error_TV @ error_TV.T) * (hidden_TD @ hidden_TD.T)
    return (error_TV * logits_TV).sum(), gram_TT.sum()

  inner_B, square_B = jax.lax.map(
    one, (hidden_BTD, traj.response_BT, traj.mask_BT)
  )
  return {'inner': inner_B, 'square': jnp.maximum(square_B, 0.0)}


def output_norm(model: transformer.ModelConfig, params: Any) -> float:
  """|W|, the Frobenius norm of the output layer.

  Raises: ValueError if logits are not linear in it.
  """
  if model.logit_cap:
    raise ValueError(
      f'the logits of this model are capped at {model.logit_cap}: they are not '
      'linear in the output layer, as the change of its norm needs'
    )
  name = 'embed' if model.tied_embeddings else 'lm_head'
  return float(np.linalg.norm(np.asarray(params['model'][name], np.float64)))


def ranking_scores(
  model: transformer.ModelConfig,
  params: Any,
  traj: Trajectories,
  *,
  alpha: float,
  gamma: float,
) -> dict[str, Array]:
  """score: sum_t r_t of the rewards that make Q a solution, logp: sum_t log pi,
  each [B].

    r_t = Q(s_t, a_t) - gamma V(s_{t+1}),  Q = V + alpha (log pi - max log pi)

  V is the sum of the outputs of the value head, 0 after the last trained token.
  With gamma 1 it is V(s_0) + sum_t A_t. Source: "B-Coder: Value-Based Deep
  Reinforcement Learning for Program Synthesis", section 5, from the text, in
  the practical form of the inverse operator.
  """
  gap = GreedyGap()
  needs = {statistics.LOGP, statistics.VALUE_HEADS, gap}
  forward = Forward(model=model)
  stats = statistics.token_statistics(forward, params, traj, needs)
  value_BT = stats[statistics.VALUE_HEADS].sum(axis=-1)
  next_BT = next_kept(value_BT, traj.mask_BT)
  reward_BT = value_BT + alpha * stats[gap.name] - gamma * next_BT
  return {
    'score': (reward_BT * traj.mask_BT).sum(1),
    'logp': (stats[statistics.LOGP] * traj.mask_BT).sum(1),
  }


_SCORERS = {'losses': row_losses, 'gradients': output_gradients}


def score_rows(
  loaded: Loaded,
  task: Any,
  limits: tuple[int, int],
  kind: str | Callable[..., dict[str, Array]],
  batch_size: int,
) -> Mapping[str, np.ndarray]:
  """Arrays [n] of all rows of the train split, in their order.

  limits: tokens of a prompt and of a response; a longer one is an error that
  names its row. kind: 'losses', 'gradients', or a function (model, params,
  traj) -> arrays [B]. Only the first response of a row counts.
  """
  model, params, tokenizer = loaded
  rows = RecordedSet(
    task,
    'train',
    tokenizer,
    limits[0],
    max_response_tokens=limits[1],
    num_responses=1,
  )
  function = _SCORERS[kind] if isinstance(kind, str) else kind
  scorer = jax.jit(functools.partial(function, model))
  parts = []
  for start in range(0, len(rows), batch_size):
    own = np.arange(start, min(start + batch_size, len(rows)))
    padded = np.resize(own, batch_size)
    examples, *prompts = rows.batch(padded)
    records = [rows.responses(example) for example in examples]
    prompt, mask, ids = prompts
    traj = recorded_rows((prompt, mask, ids), records, limits[1])
    found = scorer(params, jax.device_put(traj))
    parts.append({name: np.asarray(x)[: len(own)] for name, x in found.items()})
  return {
    name: np.concatenate([part[name] for part in parts]).astype(np.float64)
    for name in parts[0]
  }
