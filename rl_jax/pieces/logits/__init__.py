"""Transforms of the sampling distribution, replayed when scoring."""
