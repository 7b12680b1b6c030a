"""The lines of rollouts.jsonl: a few responses of every iteration, by token.

The update computes what is logged of each token anyway; it hands out the first
rows of the batch, and the host reads them with the metrics of the iteration,
one iteration late. So nobody waits for them.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.config import ExperimentConfig
from rl_jax.runs import evaluation
from rl_jax.types import Array, Metrics, Trajectories

# The entry of an update's metrics that is no scalar.
TOKENS = 'tokens'
MAX_TOKENS = 4096  # per iteration with values of their own; at least one row
_FRACTION = '_fraction'


def num_rows(config: ExperimentConfig) -> int:
  """Rows of a batch whose tokens are logged one by one."""
  rollout, prompts = config.rollout, max(0, config.guards.log_rollouts)
  rows = min(prompts, rollout.num_prompts) * rollout.group_size
  return min(rows, max(1, MAX_TOKENS // rollout.max_response_tokens))


def token_fields(traj: Trajectories, metrics: Metrics) -> dict[str, Array]:
  """What is logged of every token, each [B, T]; metrics as pieces return them.

  entropy, logp: of the weights that sampled, by the trainer, in nats
  logp_gap: the sampler's log-prob minus the trainer's
  clip, dropped, selected, ...: 1 where a piece counts the token in its
  `policy/*_fraction`; value_clip: in `value/clip_fraction`, and so on
  """
  mask_BT = traj.mask_BT
  fields = {
    'trained': mask_BT * (traj.weight_B > 0)[:, None],
    'entropy': traj.entropy_BT,
    'advantage': traj.advantages_BT,
    'logp': traj.logp_old_BT,
    'logp_gap': traj.logp_behaviour_BT - traj.logp_old_BT,
  }
  for name, value in metrics.items():
    if name.endswith(_FRACTION) and value.shape == mask_BT.shape:
      name = name.removesuffix(_FRACTION).removeprefix('policy/')
      fields[name.replace('/', '_')] = value.astype(jnp.float32)
  return {name: x * mask_BT for name, x in fields.items() if x is not None}


def pick(
  fields: dict[str, Array], traj: Trajectories, group_M: Array, rows: int
) -> dict[str, Array]:
  """The first rows of the batch, [rows, T], from a minibatch of its groups.

  'seen' [rows] is 1 where the row is in this minibatch.
  """
  G = traj.group_size
  groups_K = jnp.arange(-(-rows // G), dtype=group_M.dtype)
  match_KM = groups_K[:, None] == group_M[None]
  place_K = match_KM.argmax(1)

  def take(x):
    groups = x.reshape(-1, G, *x.shape[1:])[place_K]
    return groups.reshape(-1, *x.shape[1:])[:rows]

  seen = jnp.repeat(match_KM.any(1), G)[:rows]
  return {**{n: take(x) for n, x in fields.items()}, 'seen': seen}


def latest(steps: Sequence[dict[str, Array]]) -> dict[str, Array]:
  """Of each row what the last step that trained it has found."""
  found = steps[0]
  for step in steps[1:]:
    new = step['seen']
    found = {
      name: jnp.where(new.reshape(-1, *[1] * (x.ndim - 1)), step[name], x)
      for name, x in found.items()
    }
  return found


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
  """The text of every token; '' for special ones.

  A character of several tokens stands at the last of them.
  """
  texts, held = [], []
  for i, token in enumerate(ids):
    held.append(int(token))
    text = tokenizer.decode(held)
    # UTF-8 has at most 4 bytes: what is still incomplete then is invalid.
    wait = text.endswith('\ufffd') and len(held) < 4 and i + 1 < len(ids)
    texts.append('' if wait else text)
    held = held if wait else []
  return texts


def sampling_metrics(rounds: Sequence[Any]) -> dict[str, float]:
  """What the host knows of all rounds of an iteration.

  rollout/reward: mean over every sample, also of groups that were dropped
  (`reward/mean` is that of the batch); samples without a reward do not count.
  """
  rewards = np.concatenate([r.reward_NG.ravel() for r in rounds])
  known = rewards[np.isfinite(rewards)]
  return {
    'rollout/rounds': len(rounds),
    'rollout/reward': float(known.mean()) if len(known) else 0.0,
    'rollout/reward_errors': sum(
      error is not None for r in rounds for error in r.errors
    ),
  }


@dataclasses.dataclass(frozen=True)
class RolloutLog:
  """The responses of one iteration, before the host has read their values."""

  rounds: list[Any]  # collect.Round, in the order of their group serials
  first_serial: int
  arrays: Mapping[str, Any]  # on the device: see the function of that name
  prompts: int  # of the batch that are logged
  tokenizer: Any
  stop: Sequence[int]  # tokens that end a text and are no part of it

  def lines(self, host: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per response; host: what `arrays` holds, read."""
    tokens, num_prompts = host.get(TOKENS), len(self.rounds[0].examples)
    row_id_B2, weight_B = host['row_id'], host['weight']
    group_size = len(row_id_B2) // num_prompts
    lines, known = [], set()
    for row in range(min(self.prompts, num_prompts) * group_size):
      serial, sample = map(int, row_id_B2[row])
      number, n = divmod(serial - self.first_serial, num_prompts)
      if (serial, sample) in known:
        continue
      known.add((serial, sample))
      done = self.rounds[number]
      ids = host['response'][row][: host['length'][row]]
      (text,) = evaluation.decode_responses(
        {'response': [ids], 'length': [len(ids)]}, self.tokenizer, self.stop
      )
      lines.append(done.row(n, sample, text) | {'weight': float(weight_B[row])})
      if tokens is not None and row < len(tokens['seen']):
        lines[-1][TOKENS] = self._tokens(tokens, row, ids)
    return lines

  def _tokens(self, tokens, row: int, ids: np.ndarray) -> dict[str, list]:
    values = {
      name: [_short(x) for x in field[row, : len(ids)]]
      for name, field in tokens.items()
      if name != 'seen'
    }
    if all(values['trained']):
      values.pop('trained')  # as almost always
    return {'text': token_texts(self.tokenizer, ids), **values}


def arrays(
  traj: Trajectories, metrics: Metrics, prompts: int
) -> dict[str, Any]:
  """The device side of a RolloutLog; takes the tokens out of the metrics.

  Responses of the rows that are logged, whichever process has verified them.
  """
  rows = max(0, min(prompts, traj.num_prompts)) * traj.group_size
  found = {
    'row_id': traj.row_id_B2,
    'weight': traj.weight_B,
    **_first(rows, {'response': traj.response_BT, 'length': traj.length_B}),
  }
  tokens = metrics.pop(TOKENS, None)
  return found if tokens is None else {**found, TOKENS: tokens}


@functools.partial(jax.jit, static_argnums=0)
def _first(rows: int, tree: Any) -> Any:
  return jax.tree.map(lambda x: x[:rows], tree)


def mean_metrics(per_step: Sequence[Metrics]) -> Metrics:
  """Means over optimizer steps; of tokens what the last step has found."""
  scalars = [{n: x for n, x in m.items() if n != TOKENS} for m in per_step]
  mean = jax.tree.map(lambda *x: jnp.mean(jnp.stack(x)), *scalars)
  if TOKENS in per_step[0]:
    mean[TOKENS] = latest([m[TOKENS] for m in per_step])
  return mean


def _short(x: float) -> float:
  """Four significant digits: what a page shows, and half the file."""
  return float(f'{x:.4g}')
