"""Episodes: turns of a policy, environments and partners."""
