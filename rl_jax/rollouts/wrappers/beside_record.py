"""Samples beside the recorded response to the same prompt."""

from collections.abc import Sequence
from typing import Any

from absl import logging
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.data.completions import encode_recorded
from rl_jax.pieces.logits.policy_mixture import PolicyMixture
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.wrappers.guided import join_groups
from rl_jax.tasks import base
from rl_jax.types import ENVIRONMENT, PAD, POLICY, Array, Trajectories


@piece
class BesideRecord(RolloutWrapper):
  """G samples and the first recorded response of a prompt: groups of 2 G rows.

  The record is row G with label 1 (chosen_B) and the reward of the data,
  samples have label 0; rows after it weigh nothing. Of a conversation only the
  turns of the assistant are trained. The samples are of the geometric mixture
  of the policy (1 - coef) and the reference (coef), token by token; for coef >
  0 those of the policy itself are drawn and discarded. A record that is too
  long weighs nothing, and a warning counts it. Tasks without recorded responses
  give their target.
  Source: SPIN, "Self-Play Fine-Tuning Converts Weak Language Models to Strong
  Language Models"; SePPO (coef 1 in both).
  """

  coef: float = ranged(1.0, 0.0, 1.0)
  widens = 2  # see HintGuided

  @property
  def opponent(self) -> PolicyMixture | None:
    """Returns what the samples are drawn from; None: the policy itself."""
    return PolicyMixture(coef=self.coef) if self.coef > 0 else None

  @property
  def reads_reference(self) -> bool:
    """Returns whether the samples are of the reference in part."""
    return self.coef > 0

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(samples joined with the records, their round if they are others)."""
    rounds = []
    if self.opponent is not None:
      mixture = (self.opponent,)
      traj, more = sampler.sample(done.examples, done.indices, mixture)
      rounds = [more]
    records = record_rows(
      done.examples, sampler, traj.response_BT.shape[1], traj.group_size
    )
    other = np.float32(self.coef > 0)
    joined = sampler.run(join_records, traj, other, *records)
    # What the task says of tokens: rows of records have that of samples still.
    described = sampler.row_inputs(joined)
    return joined.replace(extras={**joined.extras, **described}), rounds


def record_rows(
  examples: Sequence[base.Example], sampler: Any, width: int, group_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """(tokens [B, T], their kinds, rewards [B], weights) of the records.

  The first row of each group has the record.
  """
  rows = len(examples) * group_size
  response = np.zeros((rows, width), np.int32)
  kind = np.full((rows, width), PAD, np.int32)
  reward, live = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
  for row, example in zip(range(0, rows, group_size), examples, strict=True):
    record = sampler.task.recorded(example)[0]
    ids, trained = encode_recorded(example, record, sampler.tokenizer)
    if len(ids) <= width:
      response[row, : len(ids)] = ids
      kind[row, : len(ids)] = np.where(trained, POLICY, ENVIRONMENT)
      reward[row], live[row] = record.reward, 1.0
  long = len(examples) - int(live.sum())
  if long:
    logging.warning(
      '%d of %d recorded responses have more than %d tokens and weigh nothing',
      long,
      len(examples),
      width,
    )
  return response, kind, reward, live


def join_records(
  own: Trajectories,
  other: Array,
  response_BT: Array,
  kind_BT: Array,
  reward_B: Array,
  live_B: Array,
) -> Trajectories:
  """Groups of G samples and G rows of records; other: 1 for an opponent's."""
  zeros_B = jnp.zeros_like(reward_B)
  rewards = {name: zeros_B for name in own.rewards}
  records = own.replace(
    response_BT=response_BT,
    kind_BT=kind_BT,
    length_B=(kind_BT != PAD).sum(1, dtype=jnp.int32),
    finished_B=jnp.ones_like(own.finished_B),
    mask_BT=(kind_BT == POLICY).astype(jnp.float32),
    valid_B=live_B,
    weight_B=live_B,
    logp_behaviour_BT=jnp.zeros_like(own.logp_behaviour_BT),
    rewards=rewards | {base.OUTCOME: reward_B},
    reward_B=reward_B,
  )
  joined = join_groups(own, records, jnp.ones(own.num_prompts) > 0)
  record_B = joined.extras['foreign_B']
  return joined.replace(
    extras={
      **joined.extras,
      'chosen_B': record_B,
      'logged_B': record_B,
      'opponent_B': other * (1.0 - record_B),
    }
  )
