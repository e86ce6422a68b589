"""How other harnesses read a reply and what they do when they cannot: their numbers reproduced, faults included."""
