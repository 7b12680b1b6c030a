"""On-policy reinforcement learning of language models in JAX."""
