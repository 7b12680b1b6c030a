"""The loops that join prompts, rollouts and learning."""
