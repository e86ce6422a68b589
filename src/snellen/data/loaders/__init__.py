"""Small functions from rows to Samples, one file a family."""
