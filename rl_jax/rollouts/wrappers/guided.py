"""Guide-GRPO: prompts without a right sample are sampled again with a hint."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import checks
from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import zero_masked
from rl_jax.pieces.piece import piece
from rl_jax.rollouts.rounds import unsolved
from rl_jax.rollouts.wrappers.hints import Hints
from rl_jax.types import Array, Trajectories, static


@piece
class HintGuided(Hints):
  """G samples of the prompt, and G more with a hint where all G failed.

  The hinted rows join their group under the prompt without hint:

    ratio_t = pi(y_t | x, y_<t) / pi_old(y_t | x, hint, y_<t)

  so logp_old of a hinted row is what the sampler reported. The group has 2 G
  rows; those of prompts that needed no hint are invalid and weigh nothing. The
  task writes the hint (`hinted(example)`).

  always: every prompt has the G rows with a hint, solved or not. corrected:
  False divides by pi_old(y_t | x, y_<t) instead, so that ratios are 1 before
  the first step in spite of another sampler, and costs a forward pass; the
  log-probs of the sampler are then forgotten (logp_behaviour is logp_old).
  Source: "Adaptive Guidance Accelerates Reinforcement Learning of Reasoning
  Models", from the abstract and reviews; keeping the failed rows in the group
  is a choice of this code. always, without correction: PolicyRollout of
  "Multimodal Policy Internalization for Conversational Agents", from notes.
  """

  # Failed: no valid reward of the group is above this, in units of the reward.
  solved_above: float = ranged(0.5)
  always: bool = static(default=False)
  corrected: bool = static(default=True)
  widens = 2  # times as many rows a group, for the memory plan
  reads_rewards = True

  @property
  def scores(self) -> bool:
    """Returns whether it reads log-probs of the policy before the update."""
    return not self.corrected

  def _failed(self, reward_NG: np.ndarray) -> np.ndarray:
    """Prompts without a solved sample, bool [N]; NaN: verification failed."""
    return unsolved(reward_NG, self.solved_above)

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups joined with hinted rows, the round of hints if there was one)."""
    wanted_N = self._failed(done.reward_NG) | self.always
    hinted, rounds = traj, []
    if wanted_N.any():
      # Without a hint the rows weigh nothing.
      hinted, more, wanted_N = self.sample_hinted(done, sampler, wanted_N)
      rounds = [more]
    joined = sampler.run(join_groups, traj, hinted, wanted_N)
    if not self.corrected:
      joined = sampler.run(as_without_hint, joined, sampler.logp(joined))
    return joined, rounds


def as_without_hint(joined: Trajectories, logp_BT: Array) -> Trajectories:
  """logp_BT is what drew the hinted rows, as ratios are to know it."""
  foreign_B1 = joined.extras['foreign_B'][:, None] > 0
  own_BT = zero_masked(logp_BT, joined.mask_BT)
  drawn_BT = jnp.where(foreign_B1, own_BT, joined.logp_behaviour_BT)
  return joined.replace(logp_behaviour_BT=drawn_BT)


def join_groups(
  plain: Trajectories, hinted: Trajectories, failed_N: Array
) -> Trajectories:
  """Groups of G plain and G hinted rows, under the plain prompt.

  Hinted rows of prompts that are not failed_N are invalid and weigh nothing.
  """
  N, G = plain.num_prompts, plain.group_size
  use_B = jnp.repeat(failed_N.astype(jnp.float32), G)
  hinted = hinted.replace(
    valid_B=hinted.valid_B * use_B,
    weight_B=hinted.weight_B * use_B,
    mask_BT=hinted.mask_BT * use_B[:, None],
    logp_behaviour_BT=hinted.logp_behaviour_BT * use_B[:, None],
  )

  names = {*plain.rewards, *hinted.rewards}
  zeros = jnp.zeros_like(plain.reward_B)
  plain, hinted = (
    t.replace(rewards={name: t.rewards.get(name, zeros) for name in names})
    for t in (plain, hinted)
  )

  def join(a, b):
    def split(x):
      return x.reshape(N, G, *x.shape[1:])

    both = jnp.concatenate([split(a), split(b)], axis=1)
    return both.reshape(2 * N * G, *a.shape[1:])

  of_prompts = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')
  same = checks.values(plain, of_prompts)
  none = dict.fromkeys(of_prompts)
  rows = jax.tree.map(join, plain.replace(**none), hinted.replace(**none))
  foreign_B = join(jnp.zeros(N * G), jnp.ones(N * G))
  return rows.replace(
    **same,
    group_size=2 * G,
    extras={**rows.extras, 'foreign_B': foreign_B},
  )
