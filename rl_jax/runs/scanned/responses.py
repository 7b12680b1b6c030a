"""What rows say and earn, be they single responses or episodes."""

from typing import Any

from rl_jax.config import ExperimentConfig
from rl_jax.models import transformer
from rl_jax.rollouts import episodes_on_device
from rl_jax.rollouts.generate import generate
from rl_jax.rollouts.sampling import SamplingConfig
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
      turns=rollout.turns,
      task=task,
      tokenizer=tokenizer,
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


def metrics(traj: Trajectories) -> Metrics:
  """Tokens that were sampled and, of episodes, what the loop says of them."""
  found = {'rollout/tokens': traj.mask_BT.sum()}
  if traj.turns is None:
    return found
  return found | {
    'episode/turns': (traj.turn_BT.max(axis=1) + 1).mean(),
    'episode/calls': traj.turns.calls_BK.sum(axis=1).mean(),
  }
