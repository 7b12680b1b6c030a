"""BLEUBERI: GRPO with BLEU as the reward, Qwen2.5-7B and 3B."""
