"""What people say of runs and trials: flags, notes, wrong gold answers; kept in a file beside the run."""
