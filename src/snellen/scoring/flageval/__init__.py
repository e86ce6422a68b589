"""FlagEvalMM's own rules: what its evaluators count as right."""
