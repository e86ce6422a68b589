"""Replies to answers: one ordered table of named rules for choices, and readers for yes/no, numbers and short texts."""
