"""The folder of a run in, the exam.json beside it out, where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import DataError


def stored_exam(folder: Path) -> dict[str, Any] | None:
    """Return what an exam found; None where there is no exam.json (none was sat, or it is not over)."""
    path = folder / "exam.json"
    try:
        content = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} is not an exam: {error}; run the same `snellen exam` again") from None
    if not isinstance(content, dict) or not isinstance(content.get("tests"), dict):
        raise DataError(f"{path} is not an exam: it holds no tests; run the same `snellen exam` again")
    return content
