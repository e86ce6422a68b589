"""What is stored, to be looked at: files and boards, the viewer, one reply explained."""
