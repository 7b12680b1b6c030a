"""Flags that several binaries share."""
