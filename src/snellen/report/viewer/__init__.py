"""The viewer: runs, trials, notes, comparisons and trainings as pages."""
