"""Drafts by a model, gates, review by people, a dataset."""
