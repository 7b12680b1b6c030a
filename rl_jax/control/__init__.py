"""Histories: worlds and actors as pure functions, and what learns from them."""
