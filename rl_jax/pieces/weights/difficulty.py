"""GUI-G1: harder prompts weigh more in the loss."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class DifficultyWeight:
  """w_i on every token of prompt i, from extras['difficulty_B'].

  The paper takes w from the relative size of the target box (smaller is
  harder); the code reads a precomputed column. It multiplies the whole loss of
  the prompt, regularizers such as the KL too.
  Source: "GUI-G1: Understanding R1-Zero-Like Training for Visual Grounding in
  GUI Agents"; Yuqi-Zhou/GUI-G1 grpo_trainer.py.
  """

  role: ClassVar[str] = 'weight'
  weighs: ClassVar[tuple[str, ...]] = ('policy', 'regularizer')
  per_token: ClassVar[bool] = True

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T]."""
    del stats, key
    weight_B = row_inputs.read(traj, 'difficulty_B').astype(jnp.float32)
    weight_BT = jnp.broadcast_to(weight_B[:, None], traj.mask_BT.shape)
    return weight_BT, {'policy/difficulty_weight': weight_BT}
