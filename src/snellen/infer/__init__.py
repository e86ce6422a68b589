"""Trials to the calls they need: one each, by likelihood, in dialogues, chains and documents, or as a plug-in says."""
