"""`snellen train`."""
