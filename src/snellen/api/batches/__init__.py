"""Runs that wait in a provider's batches: how they are asked, looked at and cancelled."""
