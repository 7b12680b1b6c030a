"""Worlds of other packages' protocols, as a user would write them."""
