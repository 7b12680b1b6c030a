"""Binaries: python -m experiments.NAME --help; their libraries in folders."""
