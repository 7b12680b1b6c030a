"""Checkpoints: atomic writes, verification, restoring."""
