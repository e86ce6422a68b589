"""Generated page images: render, perturb, plant."""
