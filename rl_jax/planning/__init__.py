"""Memory, FLOP, bytes and communication of a run, without running it."""
