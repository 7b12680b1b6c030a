"""Whole runs as one program."""
