"""One stored trial to its scores: the scorers that cards name."""
