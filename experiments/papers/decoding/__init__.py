"""Programs about ways of decoding."""
