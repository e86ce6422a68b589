"""Commands about published benchmarks."""
