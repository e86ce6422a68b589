"""Jobs to stored predictions: the run loop, and what stands around a call (limits, retries, deadlines, batches)."""
