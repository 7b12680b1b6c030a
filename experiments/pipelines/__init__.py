"""Trainings in sequence."""
