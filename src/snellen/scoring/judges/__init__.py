"""Models and people that judge replies: what they are asked, what they said, and what becomes of it."""
