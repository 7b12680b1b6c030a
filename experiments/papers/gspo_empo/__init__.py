"""GSPO and EMPO on Qwen2.5-Math."""
