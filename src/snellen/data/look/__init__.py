"""Pictures that a model asks to see again: regions, their geometry, and what stands in for them."""
