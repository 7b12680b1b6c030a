"""All methods on the bandit."""
