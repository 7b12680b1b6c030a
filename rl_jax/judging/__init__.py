"""The sources of rewards: verifiers, judges, reward models."""
