"""Pure: stored trials to scores, scores to estimates; no network, no data source."""
