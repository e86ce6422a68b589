"""How providers take many requests at once, at half the price and in their own time: lines, files, states, results."""
