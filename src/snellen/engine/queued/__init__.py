"""Requests that wait in a provider's batches: files of lines, a ledger of what was sent, answers when they come."""
