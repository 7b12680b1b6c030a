"""Rewards in worker processes, their journal, a sandbox for Python code."""

from rl_jax.verification.pool import Outcome as Outcome
from rl_jax.verification.pool import VerifierPool as VerifierPool
