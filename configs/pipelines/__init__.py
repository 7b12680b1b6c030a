"""Recipes of several trainings in sequence, for `experiments.pipeline`."""
