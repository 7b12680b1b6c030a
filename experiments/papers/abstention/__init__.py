"""One answer, a set of answers, or none."""
