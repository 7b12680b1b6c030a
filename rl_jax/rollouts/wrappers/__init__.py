"""How groups are sampled where G samples of the prompt are not all."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
