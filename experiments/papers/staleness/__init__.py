"""What rollouts that are several iterations behind do to learning."""
