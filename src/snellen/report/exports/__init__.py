"""Stored runs to files other programs read."""
