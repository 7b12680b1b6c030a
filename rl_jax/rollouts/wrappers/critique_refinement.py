"""Critique-GRPO: one sample of each group is a refinement after a critique."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import checks
from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.rollouts.wrappers.own_contexts import OwnContexts
from rl_jax.runtime import processes
from rl_jax.types import Array, Trajectories


@piece
class CritiqueRefinement(OwnContexts):
  """Sample 0 of a group becomes the best refinement of its G samples.

  Each of the G samples is shown to the policy with a critique, which the task
  writes (`criticised`), and answered once more. The first refinement with a
  reward above solved_above, else the one with the largest, takes the place of
  sample 0, under the prompt without critique; it is foreign there. A prompt
  that is too long with a critique is answered without one.
  Source: Critique-GRPO, critique_vllm_rollout_spmd.py (by a digest).
  """

  solved_above: float = ranged(0.5)  # in units of the reward
  reads_rewards = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task writes no critiques."""
    super().check(context)
    task = context.task
    if task is not None and not task.supports('criticised'):
      raise ValueError(
        'method.rollout: CritiqueRefinement needs a task with critiques, but '
        f'{type(task).__name__} has no method `criticised`'
      )

  def _chosen(self, reward_NG: np.ndarray) -> np.ndarray:
    """The refinement that each group takes, int32 [N]; NaN: not judged."""
    known_NG = np.where(np.isnan(reward_NG), -np.inf, reward_NG)
    right_NG = known_NG > self.solved_above
    first_N, best_N = right_NG.argmax(1), known_NG.argmax(1)
    return np.where(right_NG.any(1), first_N, best_N).astype(np.int32)

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups with their refinement, the round of refinements)."""
    texts = [x for part in processes.gather(list(done.texts)) for x in part]
    contexts, count = [], traj.group_size
    for place, text in enumerate(texts):
      example = done.examples[place // count]
      changed = sampler.task.criticised(example, text)
      contexts.append(changed if sampler.fits(changed) else example)
    refined, more = sampler.sample_each(contexts, done.examples, done.indices)
    index_N = self._chosen(more.reward_NG)
    return sampler.run(with_refinement, traj, refined, index_N), [more]


def with_refinement(
  traj: Trajectories, refined: Trajectories, index_N: Array
) -> Trajectories:
  """Groups whose sample 0 is the refinement of that number."""
  N, G = traj.num_prompts, traj.group_size
  plain = traj.replace(
    extras={**traj.extras, 'foreign_B': jnp.zeros_like(traj.valid_B)}
  )
  prompts = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')
  none = dict.fromkeys(prompts)

  def one(own: Array, new: Array):
    own_NG, new_NG = (x.reshape(N, G, *x.shape[1:]) for x in (own, new))
    picked_N = new_NG[jnp.arange(N), index_N]
    return own_NG.at[:, 0].set(picked_N).reshape(own.shape)

  rows = jax.tree.map(one, plain.replace(**none), refined.replace(**none))
  return rows.replace(**checks.values(traj, prompts))
