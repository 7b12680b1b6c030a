"""GHPO: hints for problems that no sample solves, Qwen2.5-Math-7B."""
