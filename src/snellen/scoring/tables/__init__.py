"""The trials of a task as columns: built while replies are scored, read by aggregates and pages."""
