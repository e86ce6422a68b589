"""Cards of published benchmarks: where their data is, which protocols they have, how their rows are read."""
