"""Thin commands: parse, call one library function, print."""
