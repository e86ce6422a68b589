"""The viewer: runs, trials, notes and comparisons as pages."""
