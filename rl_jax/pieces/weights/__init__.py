"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
