"""Released models of RLHFlow, by the options of ARC-Challenge."""
