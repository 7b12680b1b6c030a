"""Seconds, bytes and FLOP of the stages, alone and beside peers."""
