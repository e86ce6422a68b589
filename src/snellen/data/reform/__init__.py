"""Sixty-one datasets in one form: raw annotations, prepared files or bundles to Samples."""
