"""Episodes without their last turn, which begins again with a given text."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.rollouts.wrappers.guided import join_groups
from rl_jax.types import FORCED, PAD, POLICY, Array, Trajectories


def behind_texts(
  traj: Trajectories,
  wanted_B: Array,
  serial: Array,
  ids_BL: Array,
  mu_BL: Array,
) -> tuple[Trajectories, Array]:
  """(copies that wait after their text, mu of its tokens [B, T]).

  A row that is not wanted, has a single turn or no room is finished and empty.
  serial: of the first group, so that draws are new. mu: 0 after a text's end.
  """
  assert traj.turn_BT is not None
  T, L = traj.response_BT.shape[1], ids_BL.shape[1]
  own_BT = traj.kind_BT == POLICY
  last_B = jnp.where(own_BT, traj.turn_BT, 0).max(axis=1)
  answer_BT = own_BT & (traj.turn_BT == last_B[:, None])
  cut_B = answer_BT.argmax(axis=1).astype(jnp.int32)
  end_B = cut_B + (mu_BL > 0).sum(axis=1, dtype=jnp.int32)
  live_B = wanted_B & (last_B > 0) & (end_B < T)
  place_BT = jnp.arange(T)[None] - cut_B[:, None]

  def of_text(x_BL):
    return jnp.take_along_axis(x_BL, jnp.clip(place_BT, 0, L - 1), axis=1)

  before_BT = live_B[:, None] & (place_BT < 0)
  text_BT = live_B[:, None] & (place_BT >= 0)
  text_BT &= jnp.arange(T)[None] < end_B[:, None]

  def kept(x_BT, other):
    return jnp.where(before_BT, x_BT, other)

  serial_N = serial + jnp.arange(traj.num_prompts, dtype=jnp.int32)
  serial_B = jnp.repeat(serial_N, traj.group_size)
  ids_BT = jnp.where(text_BT, of_text(ids_BL), 0)
  turn_BT = jnp.where(text_BT, last_B[:, None], -1)
  live = live_B.astype(jnp.float32)
  waiting = traj.replace(
    response_BT=kept(traj.response_BT, ids_BT),
    kind_BT=kept(traj.kind_BT, jnp.where(text_BT, FORCED, PAD)),
    turn_BT=kept(traj.turn_BT, turn_BT),
    length_B=jnp.where(live_B, end_B, 0),
    finished_B=~live_B,
    row_id_B2=jnp.stack([serial_B, traj.row_id_B2[:, 1]], axis=1),
    logp_behaviour_BT=kept(traj.logp_behaviour_BT, 0.0),
    valid_B=live,
    weight_B=live,
    reward_B=None,
    rewards={},
    extras={},
  )
  return waiting, jnp.where(text_BT, of_text(mu_BL), 0.0)


def joined(
  traj: Trajectories, clones: Trajectories, mu_BT: Array
) -> tuple[Trajectories, Array]:
  """(groups of samples and clones, mu of the rows); texts are trained, too.

  What clones have faced is unknown: states are numbered within a round.
  """
  assert clones.turns is not None
  unknown = jnp.full_like(clones.turns.state_BK, -1)
  text_BT = (mu_BT > 0).astype(jnp.float32)
  clones = clones.replace(
    turns=clones.turns.replace(state_BK=unknown, action_BK=unknown),
    mask_BT=jnp.maximum(clones.mask_BT, text_BT),
    valid_B=clones.valid_B * (clones.length_B > 0),
  )
  both = join_groups(traj, clones, jnp.ones(traj.num_prompts, bool))
  shape = (traj.num_prompts, traj.group_size, -1)
  mu_NGT = mu_BT.reshape(shape)
  both_NGT = jnp.concatenate([jnp.zeros_like(mu_NGT), mu_NGT], axis=1)
  return both, both_NGT.reshape(both.mask_BT.shape)


def texts_with_mu(
  texts: tuple[str, ...], tokenizer: Any
) -> tuple[np.ndarray, np.ndarray]:
  """(ids [M, L], mu [M, L]) of the texts; mu is 0 after the end of each."""
  encoded = [tuple(tokenizer.encode(text)) for text in texts]
  width = max(map(len, encoded))
  ids_ML = np.zeros((len(encoded), width), np.int32)
  mu_ML = np.zeros((len(encoded), width), np.float32)
  for m, ids in enumerate(encoded):
    for place, token in enumerate(ids):
      begun = [
        x for x in encoded if len(x) > place and x[:place] == ids[:place]
      ]
      same = sum(x[place] == token for x in begun)
      ids_ML[m, place] = token
      mu_ML[m, place] = same / len(begun) if place else 1.0
  return ids_ML, mu_ML
