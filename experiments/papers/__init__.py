"""Sweeps that compare methods or reproduce a table, one module each."""
