"""Runs and comparisons to what stands in a paper: tables in every form, figures as vectors, one page for all."""
