"""How stored replies are read and counted, by name: readings of one run live beside each other, each in its own files.

The run's own reading is that of its first command: results.json, records.jsonl and the scores in run.db. Any other is
kept as `results-NAME.json` and `records-NAME.jsonl`; it can be computed again at any time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...core.counting import CONVENTIONS
from ...core.errors import UsageError, did_you_mean, not_among
from ...core.tasks import RunHeader, Task
from ...core.types import REDUCTIONS
from ...extract.extraction import RULE_SET
from ...extract.profiles import profile_named
from ...store.reader import RunReader

OWN_PROFILE = "snellen"
META = "reading"
"""Where run.db keeps the run's own reading."""
JUDGE_PREFIX = "judge-"
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
COUNTED = "every reply; unread is not right"
"""What the figures of results.json are over. Those of 0.2, which do not say it, left out what was not read."""


class Reading(Struct, frozen=True, omit_defaults=True):
    """One way to make numbers of stored replies; the default is the one of Snellen, as the tasks say."""

    profile: str = OWN_PROFILE
    """Whose rules read answers."""
    scorers: tuple[str, ...] = ()
    """Instead of those of the tasks."""
    reduction: str = ""
    """How log-likelihoods become one value an option, instead of as asked."""
    convention: str = CONVENTIONS[0]
    """What Cf and Cb divide by."""
    protocol: str = ""
    """Of cards: the protocol whose reader, fallback and figures are taken, instead of the one that was asked in."""
    extractor: str = ""
    """The model that found the answers where the protocol's own tool asks one, `provider/name`."""

    @property
    def name(self) -> str:
        """Return the name: what differs from the default, joined; `snellen` where nothing does."""
        profile = self.profile if self.profile != OWN_PROFILE else ""
        convention = self.convention if self.convention != CONVENTIONS[0] else ""
        extractor = f"extractor-{self.extractor}" if self.extractor else ""
        parts = [
            part for part in (self.protocol, profile, *self.scorers, self.reduction, convention, extractor) if part
        ]
        return _UNSAFE.sub("-", "+".join(parts)) or OWN_PROFILE

    def options(self) -> dict[str, str]:
        """Return what scorers and aggregates are told."""
        told = {"profile": self.profile if self.profile != OWN_PROFILE else "", "reduction": self.reduction}
        told["convention"] = self.convention if self.convention != CONVENTIONS[0] else ""
        return {name: value for name, value in told.items() if value}

    def described(self) -> dict[str, Any]:
        """Return what results.json says of who made it."""
        rules: int | str = RULE_SET if self.profile == OWN_PROFILE else self.profile
        table = msgspec.structs.asdict(self)
        return {"name": self.name, "rules": rules, **table, "scorers": list(self.scorers)}


OWN = Reading()


def check_reading(reading: Reading) -> Reading:
    """Refuse a profile, reduction or convention that does not exist, by name."""
    if reading.profile != OWN_PROFILE:
        profile_named(reading.profile)
    if reading.reduction and reading.reduction not in REDUCTIONS:
        raise UsageError(f"unknown reduction {not_among(reading.reduction, REDUCTIONS)}")
    if reading.convention not in CONVENTIONS:
        raise UsageError(f"unknown convention {reading.convention!r}: use {' or '.join(CONVENTIONS)}")
    return reading


def own_reading(reader: RunReader) -> Reading:
    """Return how a run's first command read its replies; ours where none has read them yet."""
    table = reader.meta(META)
    return msgspec.convert(table, Reading) if table else OWN


def file_of(folder: Path, stem: str, ending: str, name: str | None = None) -> Path:
    """Return the file of a reading, `results-reform.json`; without a name that of the run's own, `results.json`."""
    return folder / f"{stem}{f'-{name}' if name else ''}.{ending}"


def stored_readings(folder: Path) -> dict[str, Path]:
    """Return the readings that are kept beside a run's own, by name."""
    prefix = "results-"
    return {path.stem.removeprefix(prefix): path for path in sorted(folder.glob(f"{prefix}*.json"))}


def named_reading(reader: RunReader, name: str) -> Reading | None:
    """Return a reading by its name: None for the run's own, else one that is kept, else a profile's."""
    if name == own_reading(reader).name:
        return None
    kept = stored_readings(reader.folder)
    return kept_reading(reader.folder, name)[0] if name in kept else check_reading(Reading(name))


def kept_reading(folder: Path, name: str) -> tuple[Reading, dict[str, Any]]:
    """Return a kept reading and its results; one that is not there is refused, with those that are."""
    known = stored_readings(folder)
    if name not in known:
        kept = f"kept: {', '.join(known)}" if known else "none is kept"
        advice = f"make it with `snellen score {folder} --profile …`"
        raise UsageError(f"{folder} has no reading {name!r}{did_you_mean(name, known)}; {kept}; {advice}")
    try:
        results: dict[str, Any] = msgspec.json.decode(known[name].read_bytes())
        fields = {key: value for key, value in results["run"]["reading"].items() if key in Reading.__struct_fields__}
        return msgspec.convert(fields, Reading), results
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{known[name]} cannot be read ({error}): score the run again") from None


def judge_folder(run: Path, name: str) -> Path:
    """Return where the votes of a judge on a run are kept."""
    return run / f"{JUDGE_PREFIX}{name}"


def judge_folders(run: Path) -> list[Path]:
    """Return where the judges that were asked about a run keep their votes."""
    return sorted(run.glob(f"{JUDGE_PREFIX}*"))


def read_in(task: Task, protocol: str, header: RunHeader) -> Task:
    """Return a task of a run as a protocol of its card reads it; its name says in which it was asked."""
    if protocol in ("", task.protocol):
        return task
    from ...data.atlas.protocols import protocol_named
    from ...data.catalog import Catalog

    known = Catalog().protocols(task.name) if header.protocols is None else header.protocols.get(task.name, {})
    parts = structs.asdict(protocol_named(protocol, known, task.name))
    asked = f"asked in {task.protocol}" if task.protocol else "asked in none"
    return structs.replace(task, protocol=f"{protocol}, {asked}", **parts)


def card_note(task: Task, protocol: str, header: RunHeader) -> list[str]:
    """Say that a run holds no protocols, so that the card of this installation was taken for its own."""
    if header.protocols is not None or protocol in ("", task.protocol):
        return []
    what = f"this run does not hold the protocols of its card: {protocol} is that of the installed card {task.name}"
    return [f"{what}, which another version of Snellen may read otherwise"]
