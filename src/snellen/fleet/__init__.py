"""Requests to replicas that hold a model: leases to processes of this machine or to actors of a Ray cluster."""
