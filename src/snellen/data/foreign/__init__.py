"""Predictions of other harnesses to rows of one form: what was asked, what came back, what the harness made of it."""
