"""Files that a run writes: metrics, responses, progress, checkpoints."""
