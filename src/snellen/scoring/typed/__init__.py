"""Answers with a type: boxes, points, numbers, dates and lists, each compared as its kind wants it."""
