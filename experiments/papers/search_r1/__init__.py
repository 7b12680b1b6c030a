"""Search-R1 and LLDS: PPO, GRPO and GSPO with a search engine, 3B and 7B."""
