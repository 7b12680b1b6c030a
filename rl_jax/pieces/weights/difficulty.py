"""GUI-G1: harder prompts weigh more in the loss."""

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class DifficultyWeight(Weight):
  """w_i on every token of prompt i, from extras['difficulty_B'].

  The paper takes w from the relative size of the target box (smaller is
  harder); the code reads a precomputed column. It multiplies the whole loss of
  the prompt, regularizers such as the KL too.
  Source: "GUI-G1: Understanding R1-Zero-Like Training for Visual Grounding in
  GUI Agents"; Yuqi-Zhou/GUI-G1 grpo_trainer.py.
  """

  weighs = ('policy', 'regularizer')
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    weight_B = row_inputs.read(traj, 'difficulty_B').astype(jnp.float32)
    weight_BT = jnp.broadcast_to(weight_B[:, None], traj.mask_BT.shape)
    return LossOut(weight_BT, {'policy/difficulty_weight': weight_BT})
