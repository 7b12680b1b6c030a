"""The table of baselines that verl publishes for GSM8K."""
