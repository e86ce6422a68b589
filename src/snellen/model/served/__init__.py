"""Models behind HTTP: dialects, replies, clients, and scoring through a server."""
