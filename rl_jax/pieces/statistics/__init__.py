"""Functionals of the policy's logits that single methods read by token."""

from rl_jax.pieces.piece import pieces_of

globals().update(pieces_of(__name__, __path__))
