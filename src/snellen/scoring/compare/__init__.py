"""Two or more scored runs to what differs between them, and how surely."""
