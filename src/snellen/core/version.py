"""The version of this package: one line that everybody below may import."""

__version__ = "0.3.0"
