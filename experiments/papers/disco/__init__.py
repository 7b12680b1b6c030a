"""DisCO on the distilled models of R1."""
