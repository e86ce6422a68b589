"""All scored trials of a task to named estimates: the group-bys."""
