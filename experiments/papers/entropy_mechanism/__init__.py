"""GRPO on two tasks, and interventions against entropy collapse."""
