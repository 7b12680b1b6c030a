"""Mutants that no test can kill, and why: they say the same, or nearly.

By file: {mutant: reason}.
"""

EQUIVALENT: dict[str, dict[str, str]] = {}

REASONS = {
  (file, name): reason
  for file, found in EQUIVALENT.items()
  for name, reason in found.items()
}
