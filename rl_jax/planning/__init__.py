"""What a run will cost, without running it."""
