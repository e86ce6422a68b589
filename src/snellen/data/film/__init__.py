"""Drawn films: what happens in them is known to the frame, and no model has seen them."""
