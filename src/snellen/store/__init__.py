"""run.db: the crash-safe log, the response cache, exports."""
