"""Stands in for fhaviary."""
