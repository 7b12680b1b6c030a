"""SimpleRL-Zoo: GRPO from base models of many sizes."""
