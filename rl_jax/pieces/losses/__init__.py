"""Policy and value losses: LossContext -> LossOut."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
