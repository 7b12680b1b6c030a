"""HTML pages of runs and tables."""
