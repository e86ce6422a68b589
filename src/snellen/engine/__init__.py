"""Policy around calls: run loop, limits, retries, executors."""
