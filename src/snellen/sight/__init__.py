"""The eye exam: stimuli drawn for one run, asked where they tell most, read back as thresholds and advice."""
