"""The command `snellen perf`: its flags, its settings, what it prints."""
