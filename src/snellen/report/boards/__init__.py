"""Results of several runs to one table."""
