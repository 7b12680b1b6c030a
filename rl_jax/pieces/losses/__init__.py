"""Policy and value losses: (stats, traj, key) -> (loss, metrics)."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
