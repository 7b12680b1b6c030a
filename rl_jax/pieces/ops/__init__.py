"""Array operations that several pieces share."""
