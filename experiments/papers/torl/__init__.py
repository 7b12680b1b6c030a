"""ToRL, and OTC on it: GRPO with a Python interpreter, Qwen2.5-Math."""
