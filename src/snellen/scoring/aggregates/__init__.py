"""The scores of a task to figures over many replies, each with its interval."""
