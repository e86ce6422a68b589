"""A second opinion in words: the two numbers, what lies between them, what was lost on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.text import plural
from ...data.foreign.damage_counts import damage_lines
from ...report.written import written, written_interval, written_share

HOW = {
    "recorded": "by the verdicts in its own file",
    "reproduced": "by its rule, applied again",
    "unknown": "no number: the file holds no verdicts, and no rule is known",
}
SHOWN_KINDS = (
    "misread",
    "read_into",
    "drawn",
    "failure_counted",
    "scored_otherwise",
    "unread_counted",
    "left_out",
    "not_compared",
)
FAVOURS = ("for the model", "against the model")


def opinion_sentence(summary: Mapping[str, Any]) -> str:
    """Return the difference in one sentence."""
    peer, ours = summary["peer"]["value"], summary["ours"]["value"]
    if peer is None or ours is None:
        return (
            f"{summary['title']}: {HOW['unknown']}. Name the rule with --as." if peer is None else "Nothing was read."
        )
    causes = [
        f"{step['what']} ({plural(step['trials'], 'row')}) {step['change'] * 100:+.1f}"
        for step in summary["steps"]
        if step["trials"]
    ]
    between = "; ".join(causes) or _without_steps(summary)
    return f"{summary['title']} counts {written_share(peer)}, we {written_share(ours)}: {between}."


def _without_steps(summary: Mapping[str, Any]) -> str:
    """Return what lies between two numbers that were not taken apart: those of groups are not sums of rows."""
    if any(summary["kinds"][kind]["count"] for kind in SHOWN_KINDS):
        return "by the rows that the lines above count; what each is worth to a group is not known"
    return "the same replies, read the same way"


def opinion_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield a second opinion for the terminal."""
    yield f"{summary['title']} · {summary['peer_task']} · {summary['model']} · {plural(summary['trials'], 'row')}"
    yield f"  {'as ' + summary['title'] + ' counts':34s} {_peer(summary)}"
    yield from (
        f"  {'as reported in ' + name:34s} {written_share(value)}" for name, value in summary["reported"].items()
    )
    ours = summary["ours"]
    rest = f"n {ours['n']:,}, of these {summary['unscored']:,} without a readable answer; {summary['failed']:,} failed"
    value = f"{written('accuracy', ours)} [{written_interval('accuracy', ours)}]"
    yield f"  {'as we read the same replies':34s} {value} ({rest})"
    for name, split in summary["splits"].items():
        yield f"  {'split ' + (name or '(none)'):34s} theirs {_share(split['peer'])}, ours {_share(split['ours'])}"
    yield from (_kind_line(summary["kinds"][kind]) for kind in SHOWN_KINDS if summary["kinds"][kind]["count"])
    yield from _flattered(summary["failures_counted_as_right"])
    yield from (f"  damage, {line}" for line in damage_lines(summary["damage"]))
    yield from (f"  note: {note}" for note in summary["notes"])
    yield f"  {summary['in_words']}"


def _flattered(count: int) -> Iterator[str]:
    if count:
        yield f"  {count:>7,} of the failed calls {'was' if count == 1 else 'were'} counted as right"


def _kind_line(entry: Mapping[str, Any]) -> str:
    favours = ", ".join(f"{entry[favour]:,} {favour}" for favour in FAVOURS if entry[favour])
    return f"  {entry['count']:>7,} × {entry['what']}{f': {favours}' if favours else ''}"


def _share(value: float | None) -> str:
    return "–" if value is None else written_share(value)


def _peer(summary: Mapping[str, Any]) -> str:
    peer = summary["peer"]
    if peer["value"] is None:
        return HOW["unknown"]
    unit = "groups of rotated copies" if peer["aggregate"] != "mean" else "rows"
    again = ""
    if peer["how"] == "recorded" and peer["reproduced_n"] and peer["aggregate"] == "mean":
        again = f"; its rule again: {written_share(peer['reproduced'])}"
        unlike = peer["verdicts_unlike_the_rule"]
        again += f", {plural(unlike, 'verdict')} unlike it (a judge, or another version)" if unlike else ""
    return f"{written_share(peer['value'])} (n = {peer['n']:,} {unit}, {HOW[peer['how']]}{again})"
