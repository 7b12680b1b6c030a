"""Reward models on benchmarks of comparisons."""
