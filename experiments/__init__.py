"""Binaries: python -m experiments.NAME --help."""
