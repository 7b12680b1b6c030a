"""Prompts on the device, with the answers for a device verifier."""

import functools
from typing import Any

from flax import struct
import jax
import numpy as np

from rl_jax.config import ExperimentConfig
from rl_jax.data.recorded import RecordedSource
from rl_jax.data.recorded_checks import reads_mismatched
from rl_jax.decoding.generate import start_trajectories
from rl_jax.episodes.episode_prompts import EpisodePrompts, begun
from rl_jax.judging.verifiers import token_rewards
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import sources
from rl_jax.runs.policy import Policy
from rl_jax.types import Array, Trajectories


class Prompts(struct.PyTreeNode, kw_only=True):
  """Encoded prompts and answers; a batch of them, or the whole split."""

  prompt_NP: Array
  mask_NP: Array
  id_N: Array
  answer_NA: Array
  answer_length_N: Array

  def take(self, index_N: Array) -> 'Prompts':
    """Some of them."""
    return jax.tree.map(lambda x: x[index_N], self)

  def start(
    self,
    group_size: int,
    max_response_tokens: int,
    first_serial: Array | int,
    policy_version: Array | int,
  ) -> Trajectories:
    """Empty rows, group_size for each prompt."""
    return start_trajectories(
      self.prompt_NP,
      self.mask_NP,
      self.id_N,
      group_size=group_size,
      max_response_tokens=max_response_tokens,
      first_serial=first_serial,
      policy_version=policy_version,
    )

  def rewards(
    self, task: Any, tokenizer: Any, traj: Trajectories
  ) -> dict[str, Array]:
    """Components f32[B] of responses to these prompts."""
    return token_rewards(
      task, tokenizer, traj, self.answer_NA, self.answer_length_N
    )


def recorded(config: ExperimentConfig, policy: Policy, mesh: Any) -> Any:
  """The recorded rows of all training prompts, Trajectories of host arrays.

  Raises: ValueError as sources.read_rows.
  """
  records = sources.read_records(config, policy)
  source = RecordedSource(
    prompts=records,
    selector=None,  # all of them, in order
    score=sources.unscored,
    mesh=mesh,
    num_prompts=len(records),
    mismatched=reads_mismatched(config.method),
  )
  return source.read(np.arange(len(records)), 0)[0]


def encode(
  config: ExperimentConfig,
  tokenizer: Any,
  split: str = 'train',
  count: int | None = None,
) -> Prompts:
  """The first count prompts of a split (None: all) as host arrays.

  Raises: ValueError if the selector cannot choose among those to train on.
  """
  rollout, kind = config.rollout, PromptSet
  if rollout.turns is not None:
    kind = functools.partial(EpisodePrompts, begin=begun(config.task))
  prompts = kind(
    config.task,
    split,
    tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  if split == 'train':
    selector = sources.selector_of(config)
    if selector.predicts:
      raise ValueError(
        f'method.selector: {type(selector).__name__} has a model of prompts, '
        'which a run as one program has not: leave --jitted out'
      )
    sources.check_selector(selector, prompts)
  count = len(prompts) if count is None else min(count, len(prompts))
  batch: Any = prompts.batch(range(count))
  examples, prompt, mask, ids = batch
  answer, length = config.task.device_answers(examples, tokenizer)
  return Prompts(
    prompt_NP=prompt,
    mask_NP=mask,
    id_N=ids,
    answer_NA=answer,
    answer_length_N=length,
  )
