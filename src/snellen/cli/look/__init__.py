"""Commands that look at stored runs."""
