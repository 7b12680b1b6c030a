"""Preference methods on pairs of data and on samples of their own."""
