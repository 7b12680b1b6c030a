"""GRPO and interventions against entropy collapse on two tasks."""
