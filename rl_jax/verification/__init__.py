"""Rewards and episodes in workers, a journal, a sandbox for Python code."""

from rl_jax.verification.pool import Outcome as Outcome
from rl_jax.verification.pool import VerifierPool as VerifierPool
