"""RewardBench 2: released reward models, measured."""
