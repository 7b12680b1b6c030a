"""Worlds in which each method acts, their measurements, and influence."""
