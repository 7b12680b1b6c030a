"""Dr. GRPO, Understanding R1-Zero-Like Training."""
