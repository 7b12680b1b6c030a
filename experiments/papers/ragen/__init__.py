"""RAGEN: agents of Qwen2.5-0.5B-Instruct on Sokoban and a frozen lake."""
