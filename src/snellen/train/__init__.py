"""Chains of reasoning to a tuned model: data, training by TRL, preferences, what was gained and what leaked."""
