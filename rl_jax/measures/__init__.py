"""What looks at a run from outside."""
