"""ProcessBench: released models of steps, measured."""
