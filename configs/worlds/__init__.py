"""Runs of small models in the worlds of this library."""
