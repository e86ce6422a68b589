"""Commands about predictions of other harnesses."""
