"""Of the package minigrid."""
