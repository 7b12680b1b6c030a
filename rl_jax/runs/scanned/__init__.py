"""Whole training runs as one compiled program."""
