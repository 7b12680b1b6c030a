"""Control, in-context and offline learning, each row by one command."""
