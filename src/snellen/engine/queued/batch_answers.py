"""Lines of results to the answer of each request, found by its name; the lines stay on disk."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import msgspec

from ...core.errors import EnvironmentProblem
from ...model.batch.batch_service import UNANSWERED, BatchResult, BatchService


class _Named(msgspec.Struct):
    custom_id: str = ""
    key: str = ""


class BatchAnswers:
    """Where every answer stands. Of two for one request the later holds: it was asked again."""

    def __init__(self, service: BatchService) -> None:
        self._service = service
        self._files: list[IO[bytes]] = []
        self._places: dict[str, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def load(self, path: Path, idents: frozenset[str]) -> int:
        """Take in a file of results; return how many of these requests it answers. Others' lines are not ours."""
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            return 0
        self._files.append(opened)
        number, offset, answered = len(self._files) - 1, 0, set()
        for line in opened:
            if line.strip():
                result = self._name_of(line, path)
                if result in idents and self._is_answer(line):
                    self._places[result] = number, offset, len(line)
                    answered.add(result)
            offset += len(line)
        return len(answered)

    def _name_of(self, line: bytes, path: Path) -> str:
        try:
            named = msgspec.json.decode(line, type=_Named)
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(
                f"{path}: a line of results cannot be read ({error}); delete it and try again"
            ) from None
        return named.custom_id or named.key

    def _is_answer(self, line: bytes) -> bool:
        return self._service.read(line).status != UNANSWERED

    def get(self, ident: str) -> BatchResult | None:
        """Return the answer to a request, if it is here."""
        place = self._places.get(ident)
        if place is None:
            return None
        number, offset, size = place
        self._files[number].seek(offset)
        return self._service.read(self._files[number].read(size))

    def forget(self, ident: str) -> None:
        """Leave an answer out: its request is asked again."""
        self._places.pop(ident, None)

    def close(self) -> None:
        """Forget everything and close the files."""
        for opened in self._files:
            opened.close()
        self._files.clear()
        self._places.clear()
