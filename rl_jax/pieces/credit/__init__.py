"""Advantages: rewards [B] -> credit [B] or [B, T], and value targets."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
