"""Which prompts are drawn, and which groups are kept."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
