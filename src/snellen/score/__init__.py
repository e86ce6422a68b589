"""Pure: stored trials to scores, scores to estimates."""
