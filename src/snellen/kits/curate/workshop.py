"""A workshop folder: where sources, drafts, gated items, decisions and the published set lie, and how each is read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...core.errors import ConfigError, UsageError
from .decisions import Ledger
from .desk import Desk, ReviewSettings
from .records import Draft, Gated, SetAside, Source, read_lines


class Workshop:
    """The files of one folder, by name."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.sources = self.folder / "sources.jsonl"
        self.drafting = self.folder / "draft"
        self.checking = self.folder / "checks"
        self.drafts = self.folder / "drafts.jsonl"
        self.gated = self.folder / "gated.jsonl"
        self.gate_report = self.folder / "gates.json"
        self.review_settings = self.folder / "review.json"
        self.ledger = self.folder / "review.db"
        self.key = self.folder / "review.key"
        self.published = self.folder / "published"

    @property
    def name(self) -> str:
        """Return what the workshop is called."""
        return self.folder.resolve().name

    def set_aside(self, stage: str) -> Path:
        """Return the file of what a stage set aside."""
        return self.folder / f"set_aside.{stage}.jsonl"

    def read_sources(self) -> list[Source]:
        """Return the coarse annotations."""
        return read_lines(self.sources, Source, "draft")

    def read_drafts(self) -> list[Draft]:
        """Return the drafted items."""
        return read_lines(self.drafts, Draft, "draft")

    def read_gated(self) -> list[Gated]:
        """Return the items that passed the gates."""
        return read_lines(self.gated, Gated, "gates")

    def read_set_aside(self) -> list[SetAside]:
        """Return everything set aside so far, at any stage."""
        paths = sorted(self.folder.glob("set_aside.*.jsonl"))
        return [record for path in paths for record in read_lines(path, SetAside, "draft")]

    def settings(self, told: ReviewSettings | None) -> ReviewSettings:
        """Return the review's settings: what was told, else what was kept; reviewers add up."""
        kept = self._kept_settings()
        if told is None or not told.reviewers:
            if kept is None:
                raise UsageError("name the reviewers: --reviewer NAME (repeatable)")
            return kept
        people = dict.fromkeys((*(kept.reviewers if kept else ()), *told.reviewers))
        settings = msgspec.structs.replace(told, reviewers=tuple(people))
        self.review_settings.write_bytes(msgspec.json.encode(settings))
        return settings

    def _kept_settings(self) -> ReviewSettings | None:
        if not self.review_settings.is_file():
            return None
        try:
            return msgspec.json.decode(self.review_settings.read_bytes(), type=ReviewSettings)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self.review_settings}: {error}") from None

    def open_desk(self, told: ReviewSettings | None = None) -> Desk:
        """Return the reviewers' desk with every decision made so far."""
        items = self.read_gated()
        if not items:
            raise UsageError(f"{self.gated} holds no items: nothing passed the gates")
        settings = self.settings(told)
        return Desk(items, Ledger(self.ledger), settings)
