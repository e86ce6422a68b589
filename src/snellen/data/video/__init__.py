"""Videos: which frames are shown, and the only door from a video file to its pictures."""
