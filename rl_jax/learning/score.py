"""Statistics of the sampled tokens before the update: logp_old, logp_ref."""

from typing import Any

import jax.numpy as jnp

from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.statistics import Forward, Needs
from rl_jax.method import CREDIT_SLOTS, Method
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.types import Array, Metrics, Trajectories


def scores_first(method: Method, steps: int) -> bool:
  """True if a rollout needs a separate forward pass before the update.

  With one optimizer step a rollout the update's own forward has the same
  weights and serves as logp_old, unless credit or the rollout reads the model,
  or the update's forward is one of shifted weights.
  """
  if method.wrapper.scores or method.shifts:
    return True
  return steps > 1 or bool(statistics_lib.model_needs(method, CREDIT_SLOTS))


def score(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  method: Method,
  *,
  policy: bool = True,
) -> tuple[Trajectories, Metrics]:
  """Fills logp_ref and, if policy, logp_old, entropy and values.

  Both without gradient: from params['policies']['reference'], if there is one,
  and from the current weights. Never packed: it is dispatched before the host
  has read any length.
  """

  def statistics(params: Any, needs: Needs):
    return statistics_lib.statistics_in_microbatches(
      forward, params, traj, needs, method.logits
    )

  scored, policies = traj, params.get('policies', {})
  if 'reference' in policies:
    reference = {**policies['reference'], 'policies': policies}
    logp_BT = statistics(reference, ())[statistics_lib.LOGP]
    scored = scored.replace(logp_ref_BT=logp_BT)
  if not policy:
    return scored, {}
  needs = statistics_lib.model_needs(method) | {statistics_lib.ENTROPY}
  stats = statistics(params, needs)
  stats |= statistics_lib.critic_values(forward, params, traj, needs)
  return with_scores(scored, stats)


def with_scores(
  traj: Trajectories, stats: dict[str, Array]
) -> tuple[Trajectories, Metrics]:
  """Stores statistics of the weights that sampled; returns their metrics.

  `rollout/logp_gap_max`, nats: the largest difference between the log-probs of
  the sampler and of the trainer.
  """
  stats, mask_BT = dict(stats), traj.mask_BT
  logp_BT = stats.pop(statistics_lib.LOGP)
  if 'logged_B' in traj.extras:
    # It is unknown what wrote the rows of data: their ratios begin at 1.
    logged_B1 = traj.extras['logged_B'][:, None] > 0
    behaviour_BT = jnp.where(logged_B1, logp_BT, traj.logp_behaviour_BT)
    traj = traj.replace(logp_behaviour_BT=behaviour_BT)
  gap_BT = jnp.abs(traj.logp_behaviour_BT - logp_BT) * mask_BT
  if 'window_start_B' in traj.extras:
    # Earlier tokens were written by earlier weights, and are not trained.
    start_B1 = traj.extras['window_start_B'][:, None]
    position_1T = jnp.arange(gap_BT.shape[1])[None]
    gap_BT = jnp.where(position_1T >= start_B1, gap_BT, 0.0)
  if 'foreign_B' in traj.extras:
    # Sampled under another prompt, by another policy or by a mixture: that is
    # the policy of the trust region.
    foreign_B = traj.extras['foreign_B']
    for name in ('opponent_B', 'mixture_B'):
      foreign_B = foreign_B + traj.extras.get(name, 0.0)
    foreign_B1 = foreign_B[:, None] > 0
    logp_BT = jnp.where(foreign_B1, traj.logp_behaviour_BT, logp_BT)
    gap_BT = jnp.where(foreign_B1, 0.0, gap_BT)
  traj = traj.replace(
    logp_old_BT=logp_BT,
    entropy_BT=stats.pop(statistics_lib.ENTROPY),
    values_BT=stats.pop(statistics_lib.VALUES, None),
    values_BTH=stats.pop(statistics_lib.VALUE_HEADS, None),
    extras={**traj.extras, **stats},
  )
  metrics = {
    'policy/entropy': masked_mean(traj.entropy_BT, mask_BT),
    'rollout/logp_gap_max': gap_BT.max(),
    'rollout/logp_gap_mean': masked_mean(gap_BT, mask_BT),
  }
  if traj.logp_ref_BT is not None:
    kl_BT = kl_estimate(traj.logp_old_BT, traj.logp_ref_BT, 'k3')
    if 'logged_B' in traj.extras:  # an estimate by rows of the policy only
      mask_BT = mask_BT * row_inputs.sampled_B(traj)[:, None]
    metrics['policy/kl_ref'] = masked_mean(kl_BT, mask_BT)
  return traj, metrics


def scored_statistics(traj: Trajectories, needs: Needs) -> dict[str, Array]:
  """The statistics that `score` stored: free when the weights are the same."""
  stored = {
    statistics_lib.LOGP: traj.logp_old_BT,
    statistics_lib.ENTROPY: traj.entropy_BT,
    statistics_lib.VALUES: traj.values_BT,
    statistics_lib.VALUE_HEADS: traj.values_BTH,
    **traj.extras,
  }
  names = map(statistics_lib.name_of, needs)
  return {name: stored[name] for name in names}
