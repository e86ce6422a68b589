"""Files of predictions made by other programs to trials of our own."""
