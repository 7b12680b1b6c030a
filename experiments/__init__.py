"""Binaries, python -m experiments.NAME --help, and folders of what they use."""
