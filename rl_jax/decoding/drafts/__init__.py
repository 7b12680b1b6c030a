"""Speculative decoding: drafts, and which of their tokens are kept."""
