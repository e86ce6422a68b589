"""Coarse annotations to an audited dataset: draft, gates, review, publish."""
