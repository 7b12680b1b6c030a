"""Comparisons of responses: who is compared, and the losses on the outcome."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
