"""Long texts to documents with needles planted, every position known."""
