"""Folders of trainings to their pages in the viewer: how far, which curves, what was learnt, what went wrong."""
