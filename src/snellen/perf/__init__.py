"""Serving performance: arrivals, timelines, metrics, SLO search."""
