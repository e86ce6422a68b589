"""References to pictures: checked, decoded, edited, and prepared once for a model."""
