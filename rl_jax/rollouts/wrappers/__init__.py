"""How groups are sampled where G samples of the prompt are not all."""
