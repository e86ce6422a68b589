"""What a run will cost and may cost: an estimate before the first request, a limit while it goes on."""
