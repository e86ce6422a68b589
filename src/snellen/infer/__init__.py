"""Which calls a trial needs: generate, dialogue, likelihood."""
