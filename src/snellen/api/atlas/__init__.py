"""Published benchmarks: rows scored by protocol, cards and suites for people, data fetched and verified."""
