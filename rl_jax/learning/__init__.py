"""Trajectories -> parameters."""
