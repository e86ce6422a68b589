"""Scores that only questions about videos have."""
