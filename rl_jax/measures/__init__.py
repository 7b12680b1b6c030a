"""Measurements of trained policies and of runs, outside of the loop."""
