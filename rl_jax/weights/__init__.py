"""Token weights without gradient, multiplied into the policy losses."""

from rl_jax.weights.clip_cov import ClipCovDrop

__all__ = ['ClipCovDrop']
