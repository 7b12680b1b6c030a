"""Programs of fewer people: searches, influence, information in responses."""
