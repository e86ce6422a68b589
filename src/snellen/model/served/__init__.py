"""Models behind HTTP: dialects, wire format, clients, and scoring through a server."""
