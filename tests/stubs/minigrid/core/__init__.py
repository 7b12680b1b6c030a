"""A module of the package minigrid."""
