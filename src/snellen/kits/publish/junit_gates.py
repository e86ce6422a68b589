"""Gates over a run as JUnit XML, and a summary in Markdown as GitHub shows one on a job's page."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ...core.errors import UsageError
from ...report.exported_run import SCORED, Details, ExportedRun, ExportedTrial, check_details
from ...report.files import write_atomically

DETAILS = {
    "gate": "rules, as accuracy>=0.7 or TASK:wer<=0.2; several are parted by ;",
    "by": "what decides: value, or interval (its near end must pass)",
    "failed": "the share of failed calls that is let pass; 0.01 where nobody says",
}
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
MOST_WRONG = 20
LONGEST_SUMMARY = 1 << 20
_LONGEST_CELL = 200
_RULE = re.compile(r"(?:(?P<task>[^:<>=]+):)?(?P<metric>[\w.:@-]+?)\s*(?P<sign>>=|<=)\s*(?P<limit>-?\d+(?:\.\d+)?)")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Verdict(NamedTuple):
    """What became of one gate: passed, failure, error (could not be decided) or skipped."""

    task: str
    rule: str
    kind: str
    message: str


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write junit.xml and summary.md; the latter is added to the file that GITHUB_STEP_SUMMARY names, if any."""
    check_details(details, DETAILS, "junit")
    verdicts = list(judge(run, details))
    output.mkdir(parents=True, exist_ok=True)
    content = ElementTree.tostring(_suite(run, verdicts), encoding="utf-8", xml_declaration=True)
    write_atomically(output / "junit.xml", lambda file: file.write(content + b"\n"))
    summary = markdown(run, verdicts)
    write_atomically(output / "summary.md", lambda file: file.write(summary.encode("utf-8", "replace")))
    place = os.environ.get(STEP_SUMMARY)
    if place:
        with Path(place).open("ab") as file:
            file.write(summary.encode("utf-8", "replace"))
    return [output / "junit.xml", output / "summary.md"]


def judge(run: ExportedRun, details: Details) -> Iterator[Verdict]:
    """Yield the verdict of every gate: complete, few failed calls, and the rules that were given."""
    by = details.get("by", "value")
    if by not in ("value", "interval"):
        raise UsageError(f"--detail by={by} is none of value, interval")
    most = _share(details.get("failed", "0.01"))
    rules = [_rule(text.strip()) for text in details.get("gate", "").split(";") if text.strip()]
    names = [task.name for task in run.tasks]
    for task, metric, _, _ in rules:
        if task is not None and task not in names:
            raise UsageError(f"--detail gate={task}:{metric}…: the run has no task {task!r} ({', '.join(names)})")
    for name in names:
        yield _complete(run, name)
        yield _few_failed(run, name, most)
        own = [rule for rule in rules if rule[0] in (None, name)]
        yield from (_decide(run, name, rule, by) for rule in own)
        if not own:
            yield Verdict(name, "headline", "skipped", f"no rule was given: {_headline_words(run, name)}")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"--detail failed={text} is no share from 0 to 1")
    return value


def _rule(text: str) -> tuple[str | None, str, str, float]:
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError(f"--detail gate={text}: a rule is METRIC>=NUMBER or TASK:METRIC<=NUMBER")
    return found["task"], found["metric"], found["sign"], float(found["limit"])


def _complete(run: ExportedRun, task: str) -> Verdict:
    missing, planned = run.missing(task), run.planned(task)
    message = f"{planned - missing} of {planned} trials are stored"
    return Verdict(task, "complete", "error" if missing else "passed", message)


def _few_failed(run: ExportedRun, task: str, most: float) -> Verdict:
    _, estimate = run.headline(task)
    failed, planned = int(estimate["failed"]), max(1, run.planned(task))
    message = f"{failed} of {planned} calls failed"
    return Verdict(task, f"failed <= {most:g}", "error" if failed > most * planned else "passed", message)


def _decide(run: ExportedRun, task: str, rule: tuple[str | None, str, str, float], by: str) -> Verdict:
    _, metric, sign, limit = rule
    name = f"{metric} {sign} {limit:g} (by {by})"
    estimate = run.metrics(task).get(metric)
    if estimate is None or estimate["value"] is None:
        return Verdict(task, name, "error", f"there is no {metric}: {', '.join(run.metrics(task)) or 'nothing scored'}")
    value, interval = float(estimate["value"]), estimate.get("ci95")
    if by == "interval" and not interval:
        return Verdict(task, name, "error", f"{metric} has no interval")
    shown = float(interval[sign == "<="]) if by == "interval" and interval else value
    passed = shown >= limit if sign == ">=" else shown <= limit
    return Verdict(task, name, "passed" if passed else "failure", words(metric, estimate))


def words(metric: str, estimate: Mapping[str, Any]) -> str:
    """Return a figure with its interval and counts."""
    interval = "95 % {:.4f} to {:.4f}, ".format(*estimate["ci95"]) if estimate.get("ci95") else ""
    counts = ", ".join(f"{name} {estimate.get(name)}" for name in ("n", "unscored", "failed", "not_yet_asked"))
    value = "–" if estimate["value"] is None else f"{float(estimate['value']):.4f}"
    return f"{metric} {value} ({interval}{counts})"


def _headline_words(run: ExportedRun, task: str) -> str:
    metric, estimate = run.headline(task)
    return words(metric or "headline", estimate)


def _suite(run: ExportedRun, verdicts: list[Verdict]) -> ElementTree.Element:
    counts = {kind: sum(one.kind == kind for one in verdicts) for kind in ("failure", "error", "skipped")}
    about = {"name": "snellen", "tests": str(len(verdicts)), "timestamp": run.began.strftime("%Y-%m-%dT%H:%M:%S")}
    about |= {"failures": str(counts["failure"]), "errors": str(counts["error"]), "skipped": str(counts["skipped"])}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", about)
    facts = ElementTree.SubElement(suite, "properties")
    for name, value in {"run": run.header.id, "model": run.header.model, "command": run.header.command}.items():
        ElementTree.SubElement(facts, "property", {"name": name, "value": _allowed(value)})
    for one in verdicts:
        case = ElementTree.SubElement(suite, "testcase", {"classname": _allowed(one.task), "name": _allowed(one.rule)})
        if one.kind == "passed":
            ElementTree.SubElement(case, "system-out").text = _allowed(one.message)
        else:
            ElementTree.SubElement(case, one.kind, {"message": _allowed(one.message)})
    return suites


def _allowed(text: str) -> str:
    """Return a text without what XML 1.0 forbids."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def markdown(run: ExportedRun, verdicts: list[Verdict]) -> str:
    """Return the summary: the gates first, then at most 20 wrong answers; within what a step may add."""
    signs = {"passed": "passed", "failure": "**failed**", "error": "**undecided**", "skipped": "no rule"}
    lines = [f"### Snellen: {_cell(run.header.model)}", "", "| task | gate | | |", "|---|---|---|---|"]
    lines += [f"| {_cell(v.task)} | {_cell(v.rule)} | {signs[v.kind]} | {_cell(v.message)} |" for v in verdicts]
    wrong = list(_wrong(run))
    if wrong:
        lines += ["", "| sample | question | expected | read | reply |", "|---|---|---|---|---|"]
        lines += [_wrong_line(trial) for trial in wrong]
    text = "\n".join(lines) + "\n"
    return (
        text if len(text.encode("utf-8", "replace")) < LONGEST_SUMMARY else "\n".join(lines[: 4 + len(verdicts)]) + "\n"
    )


def _wrong(run: ExportedRun) -> Iterator[ExportedTrial]:
    left = MOST_WRONG
    for task in run.tasks:
        for trial in run.trials(task.name):
            if trial.outcome == SCORED and not trial.is_right():
                left -= 1
                yield trial
            if not left:
                return


def _wrong_line(trial: ExportedTrial) -> str:
    read = trial.main.answer if trial.main else None
    expected = ", ".join(trial.sample.answers)
    cells = (trial.sample.id, trial.sample.question, expected, read or "", trial.prediction.text or "")
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """Return a text as a cell: no markup of its own, no bar, no line break, not too long."""
    short = text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
    return html.escape(" ".join(short.split()), quote=False).replace("|", "&#124;").replace("`", "&#96;")
