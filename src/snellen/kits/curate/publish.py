"""Accepted items to a dataset others can use: the CURE format, pictures, a task file, provenance and a data card."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.errors import DataError, UsageError
from ...core.ids import content_hash, sha256_hex
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Estimate, Image
from ...data.files.bundle import write_bundle
from ...data.files.records import write_lines
from ...data.images.decode import FORMATS, read_bytes, read_header
from ...scoring.aggregates.consistency import chains_from_items, consistency
from ...stats.intervals import wilson
from ..cure.loader import load
from .decisions import Ledger, Outcome, Status
from .desk import Desk
from .records import Draft, Question, SetAside


def agreement_figures(ledger: Ledger) -> dict[str, Any]:
    """Return how much reviewers agree on items that several of them judged."""
    agreement = ledger.agreement
    kappas = agreement.kappas().items()
    return {
        "items_with_several_reviewers": agreement.items,
        "unanimous_share": agreement.observed,
        "krippendorff_alpha": agreement.alpha(),
        "cohen_kappa": [{"reviewers": list(pair), "kappa": kappa, "items": count} for pair, (kappa, count) in kappas],
    }


def people_figures(ledger: Ledger) -> dict[str, dict[str, int]]:
    """Return mode -> who decided -> on how many items; who only skipped, or took everything back, decided nothing."""
    counts: dict[str, Counter[str]] = {}
    for (mode, _), held in sorted(ledger.current.items()):
        named = (name for name, decision in held.items() if decision.action != "skip")
        counts.setdefault(mode, Counter()).update(named)
    return {mode: dict(sorted(people.items())) for mode, people in counts.items() if people}


def audit_figures(desk: Desk) -> dict[str, Any] | None:
    """Return the share of audited items that are valid, with its 95 % Wilson interval.

    An item counts once, invalid if anybody says so.
    """
    audited = (desk.ledger.current.get(("audit", item), {}) for item in desk.queue("audit"))
    verdicts = [all(decision.action == "valid" for decision in held.values()) for held in audited if held]
    if not verdicts:
        return None
    share = sum(verdicts) / len(verdicts)
    low, high = wilson(share, len(verdicts))
    return {"audited": len(verdicts), "valid": sum(verdicts), "share": share, "ci95": [low, high]}


def ceiling_figures(desk: Desk) -> dict[str, Any] | None:
    """Return what people score who answer the questions as a model would: Rh, Rcot, Ro, Cf, Cb."""
    truth, given, people = [], [], set()
    for item in desk.queue("answer"):
        for name, decision in desk.ledger.current.get(("answer", item), {}).items():
            places = decision.body["places"]
            truth.append(_right(desk.outcome(item).draft))
            given.append({"inference": places[-1], "chain": places[:-1]})
            people.add(name)
    if not truth:
        return None
    metrics: dict[str, Estimate] = consistency(chains_from_items(truth, given))
    return {"answers": len(truth), "people": len(people), "metrics": msgspec.to_builtins(metrics)}


def _right(draft: Draft) -> dict[str, Any]:
    return {"inference": draft.inference.right, "chain": [step.right for step in draft.steps]}


def audit_sentence(figures: dict[str, Any] | None) -> str:
    """Return the audit as one reads it: 97 % valid, 95 % CI 91 % to 99 %."""
    if figures is None:
        return "not audited"
    low, high = figures["ci95"]
    return f"{figures['share']:.0%} valid, 95 % CI {low:.0%} to {high:.0%} ({figures['valid']} of {figures['audited']})"


def outcome_counts(desk: Desk) -> dict[str, int]:
    """Return how many items stand where."""
    counts = Counter(desk.outcome(item).status for item in desk.items)
    return {status.value: counts[status] for status in Status}


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write both forms of the card."""
    (folder / "card.json").write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n")
    (folder / "README.md").write_text("\n".join(card_lines(card)) + "\n", encoding="utf-8")


def card_lines(card: dict[str, Any]) -> Iterator[str]:
    """Yield the card as Markdown."""
    yield f"# {_cell(card['name'])}"
    yield ""
    lengths = ", ".join(f"{count} of {length} steps" for length, count in card["chain_lengths"].items())
    licence = _cell(card["licence"]) or "not stated"
    yield f"{card['items']} items, {card['questions']} questions; chains: {lengths}. Licence: {licence}."
    drafted = ", ".join(map(_cell, card["drafted_by"]))
    who = "1 person" if card["reviewers"] == 1 else f"{card['reviewers']} people"
    yield f"Drafted by {drafted}; reviewed by {who} in {card['decisions']} decisions."
    if card.get("despite_gates"):
        failed = ", ".join(map(_cell, card["despite_gates"]["failed"]))
        reason = _cell(card["despite_gates"]["reason"])
        yield from ["", f"**Published although the set failed its gates** ({failed}). Reason given: {reason}"]
    yield ""
    yield f"**Audit**: {audit_sentence(card['audit'])}."
    yield ""
    yield "Run it: `snellen run task.toml --model openai/NAME --base-url URL`"
    yield from _gate_lines(card["gates"])
    yield from _agreement_lines(card)
    yield from _ceiling_lines(card["human_ceiling"])
    yield from ["", "## Provenance", ""]
    yield "`provenance.jsonl`: for every item its source, who drafted it, who decided what and when."
    yield "`set_aside.jsonl`: reviewed items that are not in the set, with the reasons."


def _gate_lines(gates: dict[str, Any]) -> Iterator[str]:
    yield from ["", "## Gates", "", "| gate | seen | set aside | repaired | noted | set passes |"]
    yield "|---|---:|---:|---:|---:|---|"
    for gate in gates.get("gates", ()):
        counts = " | ".join(str(gate[name]) for name in ("seen", "failed", "repaired", "warned"))
        verdict = f"off: {_cell(gate['off'])}" if gate.get("off") else "yes" if gate["passed"] else "**no**"
        yield f"| {_cell(gate['gate'])} | {counts} | {verdict} |"
    yield from ["", "Answered without the picture, after the gates:", ""]
    yield from ["| judge | question | accuracy | chance | n |", "|---|---|---:|---:|---:|"]
    for test in gates.get("tests", ()):
        shares = f"{test['accuracy']:.1%} | {test['chance']:.1%}"
        yield f"| {_cell(test['judge'])} | {test['role']} | {shares} | {test['questions']} |"


def _agreement_lines(card: dict[str, Any]) -> Iterator[str]:
    agreement = card["agreement"]
    yield from ["", "## Review", ""]
    yield "Outcomes: " + ", ".join(f"{count} {name}" for name, count in card["outcomes"].items()) + "."
    shared = f"{agreement['items_with_several_reviewers']} items were judged by several people"
    alpha = f"Krippendorff's α {_number(agreement['krippendorff_alpha'])}"
    yield f"{shared}; all agree on {_share(agreement['unanimous_share'])}; {alpha}."
    for mode, people in card.get("people", {}).items():
        yield f"Who decided ({mode}): " + ", ".join(f"{_cell(name)} {count}" for name, count in people.items()) + "."
    for pair in agreement["cohen_kappa"]:
        people = _cell(" and ".join(pair["reviewers"]))
        yield f"Cohen's κ of {people}: {_number(pair['kappa'])} ({pair['items']} items)."


def _ceiling_lines(ceiling: dict[str, Any] | None) -> Iterator[str]:
    yield from ["", "## Human ceiling", ""]
    if ceiling is None:
        yield "Not measured."
        return
    yield f"{ceiling['answers']} items answered, by {ceiling['people']} people."
    yield from ["", "| metric | value | 95 % interval |", "|---|---:|---|"]
    for name, metric in ceiling["metrics"].items():
        interval = "–" if metric["ci95"] is None else " to ".join(f"{bound:.1%}" for bound in metric["ci95"])
        yield f"| {name} | {_share(metric['value'])} | {interval} |"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _cell(text: Any) -> str:
    return str(text).replace("|", "/").replace("\n", " ").replace("<", "&lt;")


SUFFIXES = {mime: f".{mime.partition('/')[2]}" for mime in FORMATS.values()} | {"image/jpeg": ".jpg"}
ANNOTATIONS = "annotations.json"


class Title(NamedTuple):
    """What the dataset is called, and under which licence it goes out."""

    name: str
    licence: str = ""
    despite_gates: str = ""
    """Why it goes out although the set failed its gates."""

    @property
    def slug(self) -> str:
        """Return the name as a task may carry it."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.casefold()).strip("-") or "items"


class Published(msgspec.Struct, frozen=True):
    """What was written."""

    folder: str
    items: int
    questions: int
    card: dict[str, Any]


def publish(desk: Desk, out: Path, title: Title, gates: Mapping[str, Any], set_aside: Sequence[SetAside]) -> Published:
    """Write the dataset folder, whole or not at all. Items that are open or disputed do not go in, and are counted."""
    outcomes = {item: desk.outcome(item) for item in desk.items}
    drafts = [outcome.draft for outcome in outcomes.values() if outcome.status is Status.ACCEPTED]
    if not drafts:
        raise UsageError(f"nothing to publish: {outcome_counts(desk)}; review first with `snellen curate review`")
    failed = failed_gates(gates)
    if failed and not title.despite_gates.strip():
        fix = 'repair it and run `snellen curate gates` again, or say why it goes out: --despite-gates "REASON"'
        raise UsageError(f"the set failed its gates ({', '.join(failed)}): {fix}")
    if out.exists() and not (out / ANNOTATIONS).is_file() and any(out.iterdir()):
        raise UsageError(f"{out} exists and is not a published dataset: choose another -o")
    part, old = (out.with_name(f".{out.name}.{end}") for end in ("part", "old"))
    for left in (part, old):
        shutil.rmtree(left, ignore_errors=True)
    (part / "images").mkdir(parents=True)
    try:
        _write_data(part, outcomes, title)
        card = make_card(desk, title, gates, set_aside, drafts)
        card["annotations_sha256"] = sha256_hex((part / ANNOTATIONS).read_bytes())
        write_card(part, card)
        if out.exists():
            out.rename(old)  # at once: a kill leaves no half of it
        part.replace(out)
    finally:
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)
    return Published(str(out), len(drafts), card["questions"], card)


def failed_gates(gates: Mapping[str, Any]) -> list[str]:
    """Return the names of the gates that the set as a whole did not pass."""
    return [gate["gate"] for gate in gates.get("gates", ()) if not gate["passed"]]


def _write_data(part: Path, outcomes: Mapping[str, Outcome], title: Title) -> None:
    accepted = [(item, outcome) for item, outcome in outcomes.items() if outcome.status is Status.ACCEPTED]
    rows = [_row(outcome.draft, _keep_picture(outcome.draft.source.image, part)) for _, outcome in accepted]
    (part / ANNOTATIONS).write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    names = {"slug": title.slug, "title": _plain(title.name), "licence": _plain(title.licence)}
    form = (files("snellen") / "catalog" / "curate" / "task.toml").read_text("utf-8")
    (part / "task.toml").write_text(form.format(**names))
    write_lines(part / "provenance.jsonl", [_provenance(place, *pair) for place, pair in enumerate(accepted)])
    _write_bundle(part, title)
    left_out = [_left_out(item, outcome) for item, outcome in outcomes.items() if outcome.status is not Status.ACCEPTED]
    write_lines(part / "set_aside.jsonl", left_out)


def _write_bundle(part: Path, title: Title) -> None:
    """Write the same items as a bundle of Samples, for everything that reads bundles."""
    task = Task(name="items", dataset={"loader": "cure", "path": str(part / ANNOTATIONS)})
    facts: dict[str, Any] = {"name": title.name, "licence": title.licence, "made_by": "snellen curate"}
    write_bundle(load(task, LoadContext()), part / "bundle", **facts)


def make_card(
    desk: Desk, title: Title, gates: Mapping[str, Any], set_aside: Sequence[SetAside], drafts: Sequence[Draft]
) -> dict[str, Any]:
    """Return every figure of the data card."""
    lengths = Counter(str(len(draft.steps)) for draft in drafts)
    people = people_figures(desk.ledger)
    return {
        "name": title.name,
        "licence": title.licence,
        "items": len(drafts),
        "questions": sum(len(draft.steps) + 1 for draft in drafts),
        "chain_lengths": dict(sorted(lengths.items())),
        "set_aside": dict(Counter(record.stage for record in set_aside)),
        "outcomes": outcome_counts(desk),
        "reviewers": len({name for mode in ("review", "settle") for name in people.get(mode, ())}),
        "decisions": sum(count for mode in ("review", "settle") for count in people.get(mode, {}).values()),
        "people": people,
        "drafted_by": sorted({str(draft.provenance.get("model", "people")) for draft in drafts}),
        "gates": dict(gates),
        "despite_gates": {"failed": failed_gates(gates), "reason": title.despite_gates}
        if failed_gates(gates)
        else None,
        "agreement": agreement_figures(desk.ledger),
        "audit": audit_figures(desk),
        "human_ceiling": ceiling_figures(desk),
    }


def cure_rows(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    """Return items in the CURE format, pictures by the path where they lie now."""
    return [_row(draft, draft.source.image) for draft in drafts]


def _row(draft: Draft, picture: str) -> dict[str, Any]:
    source = draft.source
    box = source.box or (0.0, 0.0, float(source.width), float(source.height))
    return {
        "image": {"url": picture, "width": source.width, "height": source.height},
        "bboxes": [dict(zip(("left", "top", "width", "height"), box, strict=True))],
        "clue": source.clue,
        "inference": _choice(draft.inference),
        "cot_inference": {
            "total_step": len(draft.steps),
            "chain": [{"question": step.question, **_choice(step)} for step in draft.steps],
        },
    }


def _choice(question: Question) -> dict[str, Any]:
    return {"candidate": list(question.candidates), "gt": question.right}


def _keep_picture(path: str, folder: Path) -> str:
    """Copy a picture under its content's name; one that cannot be read stops the publication by name."""
    try:
        data = read_bytes(Image(path))
        header = read_header(data, path)
    except DataError as error:
        raise DataError(f"cannot publish: {error}") from None
    name = f"images/{sha256_hex(data)[:24]}{SUFFIXES[header.mime]}"
    (folder / name).write_bytes(data)
    return name


def _provenance(place: int, item: str, outcome: Outcome) -> dict[str, Any]:
    draft = outcome.draft
    people = [{"reviewer": d.reviewer, "action": d.action, "at": d.at, "mode": d.mode} for d in outcome.decisions]
    origin = {"item": place, "source": item, "origin": draft.source.url or draft.source.image}
    content = content_hash([draft.steps, draft.inference])
    return {**origin, "draft": draft.provenance, "decisions": people, "content": content}


def _left_out(item: str, outcome: Outcome) -> dict[str, Any]:
    reasons = [decision.reason for decision in outcome.decisions if decision.reason]
    return {"source": item, "status": outcome.status.value, "reasons": reasons}


def _plain(text: str) -> str:
    return " ".join(text.replace("\\", " ").replace('"', "'").split())
