"""Labels of several people on the same replies to one label a reply: what they agree on, what a majority settles."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import UsageError
from ...core.text import plural
from ...core.types import TrialKey
from ...stats.agreement import Agreement
from .judge_card import NUMBER, PAIR, WORD, Judge

LabelsByPerson = Mapping[str, Mapping[TrialKey, float]]
"""Person -> reply -> label; nobody's name is empty."""
UNNAMED = "unnamed"
LONGEST_NAME = 80
SHOWN_DISPUTES = 5


class SettledLabels(Struct, frozen=True):
    """One label a reply, where people agree, and what became of the replies on which they do not."""

    labels: dict[TrialKey, float]
    disputed: dict[TrialKey, dict[str, float]]
    """Replies without a label that more than half gave, and what everybody said: none of them is used."""
    majority: int
    """Replies on which people differ and more than half of three or more agree: theirs is used."""
    averaged: int
    """Replies on which people's grades differ: their mean is used."""
    people: dict[str, int]
    """How many replies each person labelled."""
    agreement: Agreement
    apart: float | None
    """How far two people's labels on one reply lie apart on average."""

    def with_disputed(self, pick: Any) -> dict[TrialKey, float]:
        """Return the labels with the disputed replies too, each with the one of its labels that `pick` takes."""
        return self.labels | {key: pick(said.values()) for key, said in self.disputed.items()}


def check_person(name: str) -> str:
    """Return the name that a person's labels are kept under; a name that no line could show is refused.

    `Anna` and `anna ` are one person: as two she would agree with herself, and outvote somebody else.
    """
    bare = unicodedata.normalize("NFKC", name).casefold().strip()
    if len(bare) > LONGEST_NAME or not bare.isprintable():
        raise UsageError(f"{bare[:LONGEST_NAME]!r} is no name: at most {LONGEST_NAME} printable characters")
    return " ".join(bare.split())


def settle_people(people: LabelsByPerson, judge: Judge) -> SettledLabels:
    """Settle every reply that somebody labelled: by agreement, by a majority of three or more; of grades the mean."""
    said: dict[TrialKey, dict[str, float]] = {}
    for person, labels in people.items():
        for key, value in labels.items():
            said.setdefault(key, {})[person] = value
    settled: dict[TrialKey, float] = {}
    disputed: dict[TrialKey, dict[str, float]] = {}
    counts, agreement, apart = Counter[str](), Agreement(), []
    for key, given in said.items():
        agreement.change({}, {person: f"{value:g}" for person, value in given.items()})
        apart += _distances(list(given.values()))
        label, how = _settle(list(given.values()), graded=judge.verdict in (NUMBER, PAIR))
        counts[how] += 1
        if label is None:
            disputed[key] = given
        else:
            settled[key] = label
    each = {person: len(labels) for person, labels in people.items() if labels}
    mean = sum(apart) / len(apart) if apart else None
    return SettledLabels(settled, disputed, counts["majority"], counts["mean"], each, agreement, mean)


def _settle(values: list[float], *, graded: bool) -> tuple[float | None, str]:
    label, most = Counter(values).most_common(1)[0]
    if most == len(values):
        return label, "same"
    if graded:
        return sum(values) / len(values), "mean"
    return (label, "majority") if 2 * most > len(values) else (None, "disputed")


def _distances(values: list[float]) -> list[float]:
    return [abs(one - other) for at, one in enumerate(values) for other in values[at + 1 :]]


def people_account(settled: SettledLabels, judge: Judge) -> dict[str, Any]:
    """Return what results.json says of the people who labelled: who, how far they agree, what was not used."""
    agreement = settled.agreement
    account: dict[str, Any] = {"people": {person or UNNAMED: count for person, count in settled.people.items()}}
    if len(settled.people) < 2:
        return account
    graded = judge.verdict in (NUMBER, PAIR)
    return account | {
        "shared": agreement.items,
        "people_same": agreement.observed,
        "people_apart": settled.apart,
        "alpha": None if graded else agreement.alpha(),
        "kappas": [] if graded else _kappa_rows(agreement),
        "by_majority": settled.majority,
        "by_mean": settled.averaged,
        "disputed": [
            {**msgspec.structs.asdict(key), "labels": {person or UNNAMED: value for person, value in given.items()}}
            for key, given in settled.disputed.items()
        ],
    }


def _kappa_rows(agreement: Agreement) -> list[dict[str, Any]]:
    """Return Cohen's kappa of every two people."""
    return [
        {"people": [one or UNNAMED, other or UNNAMED], "kappa": kappa, "n": shared}
        for (one, other), (kappa, shared) in agreement.kappas().items()
    ]


def people_notes(labels: Mapping[str, Any], judge: Judge, figure: str) -> list[str]:
    """Say who labelled, how far they agree, and which replies were settled or left out; nothing of one person alone."""
    people = labels.get("people", {})
    if len(people) < 2:
        return []
    notes = [
        f"{figure}: labels of {', '.join(f'{person} ({count})' for person, count in people.items())}{_shared(labels)}"
    ]
    if labels["by_majority"]:
        settled = f"{plural(labels['by_majority'], 'reply')} on which people differ"
        notes.append(f"{figure}: settled by the label of more than half: {settled}")
    if labels["by_mean"]:
        settled = f"{plural(labels['by_mean'], 'reply')} on which people's grades differ"
        notes.append(f"{figure}: settled by the mean grade: {settled}")
    if labels["disputed"]:
        notes.append(_disputes(labels, judge, figure))
    return notes


def _shared(labels: Mapping[str, Any]) -> str:
    if not labels["shared"]:
        return "; no reply was labelled by two of them, so nothing is known of how far they agree"
    share = f"{100 * labels['people_same']:.1f} % have one label"
    same = f"; of {plural(labels['shared'], 'reply')} that several labelled {share}"
    kappas = labels["kappas"]
    if len(kappas) == 1 and kappas[0]["kappa"] is not None:
        return f"{same} (Cohen's kappa {kappas[0]['kappa']:.2f})"
    if labels["alpha"] is not None:
        return f"{same} (Krippendorff's alpha {labels['alpha']:.2f})"
    return f"{same}, and two labels lie {labels['people_apart']:.3g} apart on average"


def _disputes(labels: Mapping[str, Any], judge: Judge, figure: str) -> str:
    disputed = labels["disputed"]
    words = {value: word for word, value in judge.choices.items()} if judge.verdict == WORD else {}
    shown = [f"{one['sample']}: {_said(one['labels'], words)}" for one in disputed[:SHOWN_DISPUTES]]
    more = len(disputed) - len(shown)
    listed = "; ".join(shown) + (f"; {more} more in results.json" if more else "")
    said = f"{figure}: not used: {plural(len(disputed), 'reply')} on which people disagree ({listed})"
    if labels["range"] is None:
        return said
    low, high = labels["range"]
    return f"{said}; with the lower label for all of them it would be {low:.3f}, with the higher {high:.3f}"


def _said(labels: Mapping[str, float], words: Mapping[float, str]) -> str:
    return ", ".join(f"{person} {words.get(value, value)}" for person, value in labels.items())
