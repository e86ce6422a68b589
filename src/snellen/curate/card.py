"""The figures of a dataset to its data card: card.json for programs, README.md for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from .figures import audit_sentence


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
        yield f"| {_cell(gate['gate'])} | {counts} | {'yes' if gate['passed'] else '**no**'} |"
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
