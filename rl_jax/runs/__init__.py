"""Training loop, scanned runs, reward models and evaluation."""
