"""Commands about clusters and servers: look before a run does."""
