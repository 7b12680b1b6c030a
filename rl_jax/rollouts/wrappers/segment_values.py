"""SPO chain: Monte Carlo values at uncertain tokens of every response."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.row_inputs import NO_CUT
from rl_jax.rollouts import responses
from rl_jax.rollouts.wrappers.continuations import Continuations
from rl_jax.runtime import processes
from rl_jax.types import Array, Trajectories


@piece
class SegmentValues(Continuations):
  """V(cut) = mean reward of `samples` continuations after token `cut`.

    U    = {t : p_t < threshold}, p_t the sampler's probability of token t
    cuts = (U - 1)[::interval]; -1 is the prompt; max_cuts: the first ones only

  The state after token t - 1 is the one in which the uncertain token t is
  chosen. Only tokens of U are trained: the others leave mask_BT. Fills extras
  'cut_BC' (NO_CUT where a row has fewer) and 'cut_value_BC' (units of the
  reward); a row whose value cannot be verified gets weight 0.
  Source: "Segment Policy Optimization", chain variant; AIFrameResearch/SPO
  math_episode_generator_with_mc_advantages.py.
  """

  samples: int = ranged(4, 1, static=True)
  interval: int = ranged(5, 1, static=True)  # every n-th uncertain token
  # Each cut is a generation round. None: all, ceil(T / interval) at most.
  max_cuts: int | None = ranged(8, 1, static=True)
  threshold: float = ranged(0.9, 0.0, 1.0, open_low=True)

  def shapes(self, traj: Trajectories) -> Trajectories:
    """Adds the cuts and their values."""
    B, T = traj.response_BT.shape
    shape = B, self._most_cuts(T)
    cuts = {
      'cut_BC': jax.ShapeDtypeStruct(shape, jnp.int32),
      'cut_value_BC': jax.ShapeDtypeStruct(shape, jnp.float32),
    }
    return traj.replace(extras={**traj.extras, **cuts})

  def _most_cuts(self, tokens):
    return (
      -(-tokens // self.interval) if self.max_cuts is None else self.max_cuts
    )

  def _cut_points(
    self, logp_BT: np.ndarray, length_B: np.ndarray
  ) -> np.ndarray:
    """int32 [B, C], rising; NO_CUT where a row has fewer.

    C: max_cuts, or as many as T uncertain tokens have.
    """
    B, T = logp_BT.shape
    most = self._most_cuts(T)
    cuts_BC = np.full((B, most), NO_CUT, np.int32)
    uncertain_BT = logp_BT < np.log(np.float32(self.threshold))
    uncertain_BT &= np.arange(T)[None] < length_B[:, None]
    for row, uncertain_T in zip(cuts_BC, uncertain_BT, strict=True):
      cuts = (np.flatnonzero(uncertain_T) - 1)[:: self.interval]
      row[: len(cuts)] = cuts[:most]
    return cuts_BC

  def _all_cuts(self, traj: Trajectories, done: Any) -> np.ndarray:
    """The cut points of all rows; each process has read its own rows."""
    own = responses.own_rows(traj.num_prompts, traj.group_size)
    length_B = done.responses['length'][own]
    own_BC = self._cut_points(done.responses['logp'], length_B)
    parts = processes.gather(own_BC.tolist())
    cuts = [cut_C for part in parts for cut_C in part]
    return np.asarray(cuts, np.int32)

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows with values of their cuts, one round of continuations a cut)."""
    cut_BC = self._all_cuts(traj, done)
    value_BC, rounds = np.zeros(cut_BC.shape, np.float32), []
    for j, cut_B in enumerate(cut_BC.T):
      if (cut_B == NO_CUT).all():
        break
      reward_BM, found = self.rewards_behind(traj, done, sampler, cut_B)
      known_BM = np.isfinite(reward_BM)
      total_B = np.where(known_BM, reward_BM, 0.0).sum(axis=1)
      with np.errstate(invalid='ignore'):
        value_BC[:, j] = total_B / known_BM.sum(axis=1)
      rounds.append(found)
    return sampler.run(self._with_values, traj, cut_BC, value_BC), rounds

  def _with_values(
    self, traj: Trajectories, cut_BC: Array, value_BC: Array
  ) -> Trajectories:
    """Narrows the mask to uncertain tokens and stores cuts and values."""
    known_B = jnp.isfinite(value_BC).all(axis=1).astype(jnp.float32)
    uncertain_BT = traj.logp_behaviour_BT < jnp.log(jnp.float32(self.threshold))
    return traj.replace(
      mask_BT=traj.mask_BT * uncertain_BT,
      valid_B=traj.valid_B * known_B,
      weight_B=traj.weight_B * known_B,
      extras={
        **traj.extras,
        'cut_BC': cut_BC,
        'cut_value_BC': jnp.nan_to_num(value_BC),
      },
    )
