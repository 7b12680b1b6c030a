"""Seconds, bytes and FLOP of the stages, also compared with peers."""
