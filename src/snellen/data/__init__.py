"""Raw source to Sample: catalog, sources, formulations, and the only door from bytes to pixels."""
