"""SPO: advantages of segments, on GSM8K with a model of 1.1B."""
