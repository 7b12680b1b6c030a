"""Recorded responses as trajectories."""
