"""Predictions of other harnesses: imported as runs, and read a second time."""
