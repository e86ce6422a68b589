"""Datasets, page folders and prompts as files: what is made before a run, or read by programs of one's own."""
