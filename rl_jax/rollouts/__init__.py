"""From prompts to trajectories: rounds, selectors and wrappers."""
