"""Clean pages to degraded ones: thirty families at five severities, pure and seeded."""
