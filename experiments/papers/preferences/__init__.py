"""Preference methods on pairs of data and on their own samples."""
