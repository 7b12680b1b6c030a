"""Prompts on the device, with the answers for a device verifier."""

from collections.abc import Callable
import functools
from typing import Any

from flax import struct
import jax

from rl_jax.config import ExperimentConfig
from rl_jax.rollouts.episode_prompts import EpisodePrompts
from rl_jax.rollouts.generate import start_trajectories
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import token_rewards
from rl_jax.tasks.environments.base import opened, seed_of
from rl_jax.types import Array, Trajectories


@struct.dataclass(kw_only=True)
class Prompts:
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


def encode(
  config: ExperimentConfig,
  tokenizer: Any,
  split: str = 'train',
  count: int | None = None,
) -> Prompts:
  """The first count prompts of a split (None: all) as host arrays."""
  rollout, kind = config.rollout, PromptSet
  if rollout.turns is not None:
    kind = functools.partial(EpisodePrompts, begin=_begun(config.task))
  prompts = kind(
    config.task,
    split,
    tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  count = len(prompts) if count is None else min(count, len(prompts))
  examples, prompt, mask, ids = prompts.batch(range(count))
  answer, length = config.task.device_answers(examples, tokenizer)
  return Prompts(
    prompt_NP=prompt,
    mask_NP=mask,
    id_N=ids,
    answer_NA=answer,
    answer_length_N=length,
  )


def _begun(task: Any) -> Callable:
  """Examples -> the same with the first observations of their episodes."""

  def begin(examples, kept):
    del kept
    said = (task.make(one).reset(seed_of(one)).observation for one in examples)
    return [opened(*pair, False) for pair in zip(examples, said, strict=True)]

  return begin
