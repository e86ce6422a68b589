"""Numbers to numbers: distributions, intervals, tests and agreement. Nothing here knows of trials or models."""
