"""ToolRL: GRPO and PPO on function calls, Qwen2.5-1.5B to 7B-Instruct."""
