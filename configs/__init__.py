"""Experiments (get_config) and methods (get_method), one per module."""
