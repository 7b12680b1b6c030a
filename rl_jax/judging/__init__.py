"""Who gives numbers to responses: verifiers, judges, reward models."""
