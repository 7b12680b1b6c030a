"""Comparisons of methods: each folder has its sweep, results and tables."""
