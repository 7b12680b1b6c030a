"""Training loop, scanned runs, evaluation and supervised training."""
