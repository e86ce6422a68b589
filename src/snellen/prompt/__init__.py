"""Sample to Request: templates, marks, dialogue styles, shots."""
