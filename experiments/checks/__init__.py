"""Tables of checks that every method and piece passes, of ours and of users."""
