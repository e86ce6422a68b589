"""Ranges of a run scored by other processes, or by the nodes of a cluster."""
