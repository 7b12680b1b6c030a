"""SPIRAL: self-play of Kuhn poker, measured on mathematics, Qwen3-4B-Base."""
