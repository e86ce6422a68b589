"""Training as one call each: tune, make preferences, evaluate, merge."""
