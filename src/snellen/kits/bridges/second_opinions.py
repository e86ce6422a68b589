"""A second opinion: another harness's number reproduced, ours beside it, and every reply where the two part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...api.foreign_runs import IMPORTED, import_predictions
from ...core.builtins import default_registry
from ...core.errors import UsageError
from ...core.garbage import rare_collections
from ...core.tasks import Task
from ...data.foreign.peer_cards import PeerCard, PeerRules, peer_card
from ...report.files import atomic_file, write_atomically
from ...report.stored_results import read_results
from ...scoring.headline import headline
from ...scoring.ranges import scored_trials
from ...store.reader import RunReader
from .disagreement import Opinion, opinion_on
from .opinion_page import Shown, render_opinion
from .opinion_tally import GROUPED, OpinionTally
from .opinion_words import opinion_sentence
from .peer_readers import peer_reader
from .peer_verdicts import PeerProtocol, peer_protocol

LISTED = 200
"""So many disagreements of a kind are shown on the page; all are in the list beside it."""
LIST, SUMMARY, PAGE = "second-opinion.jsonl", "second-opinion.json", "second-opinion.html"


class SecondOpinion(Struct, frozen=True):
    """What a second opinion found, and where it is written."""

    folder: Path
    summary: dict[str, Any]

    @property
    def page(self) -> Path:
        """Return the page to look at."""
        return self.folder / PAGE


@rare_collections()
def second_opinion(path: str | Path, *, read_as: str | None = None, **importing: Any) -> SecondOpinion:
    """Read predictions a second time: those of a foreign file (imported first), or of a run that was imported.

    `read_as` names the harness's rule for choices, where its card does not know the benchmark or the file names no
    harness. Other settings are those of `import_predictions`.
    """
    folder = Path(path)
    if not (folder / "run.db").exists():
        folder = import_predictions(path, **importing).folder
    elif any(value is not None for value in importing.values()):
        raise UsageError(f"{path} is a run already: options for importing say nothing of it; leave them out")
    with RunReader(folder) as reader:
        about = reader.meta(IMPORTED)
        if not about:
            raise UsageError(f"{folder} holds replies that were asked for here: `snellen score` reads them otherwise")
        return SecondOpinion(folder, _form_opinion(reader, about, read_as))


def _form_opinion(reader: RunReader, about: Mapping[str, Any], read_as: str | None) -> dict[str, Any]:
    card, task = peer_card(about["harness"]), reader.header().tasks[0]
    rules = card.rules(about["peer_task"])
    if read_as is not None:
        rules = msgspec.structs.replace(rules, choice=peer_reader(read_as).name)
    protocol = peer_protocol(rules.choice, rules.yesno, rules.open)
    by_file = read_as is None and rules.aggregate != GROUPED and _has_verdicts(card, about)
    tally, shown = OpinionTally(rules.aggregate, by_file=by_file), Shown(LISTED)
    with atomic_file(Path(reader.folder) / LIST) as file:
        encode = msgspec.json.Encoder().encode
        for opinion, failed in _opinions(reader, task, protocol, by_file=by_file):
            tally.add(opinion, failed=failed)
            if opinion.kind:
                shown.add(opinion)
                file.write(encode(opinion) + b"\n")
    summary = _summary(reader, about, (card, rules), tally)
    _write(Path(reader.folder), summary, shown)
    return summary


def _has_verdicts(card: PeerCard, about: Mapping[str, Any]) -> bool:
    """Tell whether the file says what the harness counted: of every reply, or of all that it counted."""
    replies = about["rows"] - about["failed"]
    return about["judged"] > 0 and (card.leaves_out or about["judged"] >= replies)


def _opinions(
    reader: RunReader, task: Task, protocol: PeerProtocol, *, by_file: bool
) -> Iterator[tuple[Opinion, bool]]:
    for (sample, request, prediction, _), scores in scored_trials(reader, task, default_registry(), {}, task.scorers):
        score = scores[0] if scores else None
        opinion = opinion_on(protocol, sample, request, prediction, score, by_file=by_file)
        yield opinion, prediction.failure is not None


def _summary(
    reader: RunReader, about: Mapping[str, Any], known: tuple[PeerCard, PeerRules], tally: OpinionTally
) -> dict[str, Any]:
    card, rules = known
    result = read_results(reader, reader.header())["tasks"][about["task"]]
    metrics = result["metrics"]
    name, ours = (tally.metric, metrics[tally.metric]) if tally.metric in metrics else headline(result)
    counted = tally.described()
    grouped = counted.pop("ours_of_groups")
    summary: dict[str, Any] = {
        **about,
        "title": card.title,
        "seen": card.seen,
        "rules": {"choice": rules.choice, "yesno": rules.yesno, "open": rules.open},
        **counted,
        "metric": name,
        "ours": grouped or dict(ours),
        "strict": None if grouped else metrics.get(f"{name}_strict"),
        "notes": [*about["notes"], *([rules.note] if rules.note else [])],
        "files": {"list": LIST, "summary": SUMMARY, "page": PAGE},
    }
    return {**summary, "in_words": opinion_sentence(summary)}


def _write(folder: Path, summary: Mapping[str, Any], shown: Shown) -> None:
    body = msgspec.json.format(msgspec.json.encode(summary, order="sorted"), indent=2)
    write_atomically(folder / SUMMARY, lambda file: file.writelines((body, b"\n")))
    page = render_opinion(summary, shown).encode("utf-8")
    write_atomically(folder / PAGE, lambda file: file.write(page))
