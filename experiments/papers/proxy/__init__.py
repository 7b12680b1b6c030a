"""Learned rewards, optimised too far; preference methods offline and online."""
