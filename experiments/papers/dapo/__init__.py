"""DAPO on Qwen2.5-32B."""
