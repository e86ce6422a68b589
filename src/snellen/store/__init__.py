"""Predictions to run.db and back: one writer, any number of readers, and the response cache."""
