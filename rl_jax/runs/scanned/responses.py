"""Samples and rewards of rows, be they single responses or episodes."""

from typing import Any

import jax.numpy as jnp

from rl_jax.config import ExperimentConfig
from rl_jax.decoding.generate import generate
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.episodes import episodes_on_device
from rl_jax.models import transformer
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import groups
from rl_jax.runs.scanned.prompts import Prompts
from rl_jax.types import Array, Metrics, Trajectories


def sampled(
  config: ExperimentConfig,
  model: transformer.ModelConfig,
  tokenizer: Any,
  sampling: SamplingConfig,
  prompts: Prompts,
  params: Any,
  traj: Trajectories,
  key: Array,
) -> tuple[Trajectories, dict[str, Array]]:
  """(the rows of these prompts filled, reward components [B])."""
  rollout, task = config.rollout, config.task
  if rollout.turns is not None:
    return episodes_on_device.play(
      params,
      traj,
      key,
      cfg=model,
      sampling=sampling,
      game=episodes_on_device.Game(task, tokenizer, rollout.turns),
      answer_NA=prompts.answer_NA,
    )
  traj = generate(
    params,
    model,
    traj,
    key,
    sampling,
    max_new_tokens=traj.response_BT.shape[1],
    slots=rollout.slots,
    cache_tokens=rollout.cache_tokens,
  )
  return traj, prompts.rewards(task, tokenizer, traj)


def recorded(
  rows: Trajectories, index_N: Array, first_serial: Array, version: Array | int
) -> Trajectories:
  """The recorded groups of these places; see RecordedSource.rows."""
  traj = groups.take(rows, index_N)
  serial_B = jnp.repeat(jnp.arange(len(index_N)), traj.group_size)
  row_id_B2 = traj.row_id_B2.at[:, 0].set(first_serial + serial_B)
  version_B = jnp.full_like(traj.policy_version_B, version)
  return traj.replace(row_id_B2=row_id_B2, policy_version_B=version_B)


def metrics(traj: Trajectories) -> Metrics:
  """Tokens that were sampled and, of episodes, what the loop says of them."""
  sampled_B = row_inputs.sampled_B(traj)
  found = {'rollout/tokens': (traj.mask_BT * sampled_B[:, None]).sum()}
  if traj.turns is None or traj.turn_BT is None:
    return found
  return found | {
    'episode/turns': (traj.turn_BT.max(axis=1) + 1).mean(),
    'episode/calls': traj.turns.calls_BK.sum(axis=1).mean(),
  }
