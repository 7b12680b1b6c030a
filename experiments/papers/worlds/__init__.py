"""Where each method acts: the worlds, their measurements, influence."""
