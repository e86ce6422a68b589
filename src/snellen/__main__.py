"""`python -m snellen`, for launchers that start modules (accelerate)."""

from __future__ import annotations

from .cli.main import main

if __name__ == "__main__":
    main()
