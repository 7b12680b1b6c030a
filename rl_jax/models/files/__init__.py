"""Weights on disk: import, export, directories."""
