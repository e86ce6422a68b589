"""The shared words: types, errors, ids, registry, config border, clock. Imports no other room."""
