"""One reply to its scores."""
