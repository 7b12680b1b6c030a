"""Mutants that no test can kill, and why: they say the same, or nearly."""

REASONS: dict[tuple[str, str], str] = {}
