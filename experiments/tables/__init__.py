"""Tables from results, with intervals and checks."""
