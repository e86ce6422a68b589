"""Stored runs to pages and figures."""
