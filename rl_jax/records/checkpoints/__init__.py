"""Checkpoints: written, committed, verified, restored."""
