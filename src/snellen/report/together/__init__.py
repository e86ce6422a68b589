"""Several runs on one page: a matrix of samples and runs, and one sample across runs."""
