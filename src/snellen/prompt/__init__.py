"""Sample, variant and repeat to Request: templates, marks, dialogue styles, examples."""
