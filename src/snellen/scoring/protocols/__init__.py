"""How stored replies are read: by a run's own reading, by another protocol of its card, or as another tool counts."""
