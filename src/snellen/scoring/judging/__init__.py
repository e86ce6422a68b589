"""Judges: what they are asked about stored replies, what their verdicts mean, and how far people agree with them."""
