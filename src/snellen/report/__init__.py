"""Estimates to people: terminal, files, pages."""
