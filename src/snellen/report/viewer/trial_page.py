"""One trial to its page: what was seen, what was asked, what came back, why it counts so, and all its siblings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ...core.markup import Child, Html, join, shorten, tag
from ...core.types import Prediction, Score, TrialKey, Turn
from ...scoring.aggregates.error_groups import KINDS
from ...scoring.tables.table import TrialColumns
from ..pages.gallery import Shown, read_trial
from ..pages.parts import DRAWN, facts, head, marks_form, marks_shown, numbers, reply_text, row, row_outcome, scrolled
from .exam_parts import exam_curve
from .raw_exchange import raw_parts
from .rendered_reply import explain_score, group_steps, rendered_reply
from .run_library import OpenRun
from .same_sample import reply_difference
from .shell import link, notes_notice, pager, picture, run_crumbs, shell, trial_address
from .stage import kit_trial, pictures_part
from .video_line import videos_of
from .walk import Walk, Walked, place_of, walk_through

STEPS = 5
MOST_TOKENS = 2000


def likelihood_bars(shown: Shown) -> Html:
    """Return the options with their log-likelihoods; a bar is the share beside the likeliest."""
    values = shown.prediction.loglikelihoods or ()
    choices = shown.request.choices or shown.request.shown
    tokens = shown.prediction.detail.get("token_logprobs") or []
    known = [value for value in values if math.isfinite(value)]
    top, rows = max(known, default=0.0), []
    for place, (text, value) in enumerate(zip(choices, values, strict=False)):
        share = math.exp(value - top) if math.isfinite(value) else 0.0
        bar = tag("rect", x=0, y=2, width=round(200 * share, 2), height=12, rx=2, class_="f1")
        drawn = tag("svg", bar, viewBox="0 0 200 16", class_="range", aria_hidden="true")
        parts = _cells(tokens[place]) if place < len(tokens) else None
        name = tag("span", text, parts, class_="option")
        rows.append(row(name, tag("td", drawn, class_="bar"), *numbers([f"{value:.4f}"])))
    names = head("choice", DRAWN, ("log-likelihood", "n"))
    caption = "Bars: how likely beside the likeliest option. Squares: its tokens, the darker the less likely."
    return tag(
        "table", tag("caption", caption if tokens else caption.partition(" Squares")[0]), names, tag("tbody", *rows)
    )


def _cells(values: Any) -> Html | None:
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        return None
    cells = [tag("i", class_=_step(value), title=f"{value:.3f}") for value in values[:MOST_TOKENS]]
    return tag("span", *cells, class_="tokens", aria_hidden="true")


def _step(value: float) -> str:
    """Return a class by probability: p0 is sure, p4 is hardly expected."""
    chance = math.exp(min(0.0, value)) if math.isfinite(value) else 0.0
    return f"p{min(STEPS - 1, int((1.0 - chance) * STEPS))}"


def token_colours(prediction: Prediction) -> Html | None:
    """Return the reply token by token, each by its probability, where the model gave them (`detail["logprobs"]`)."""
    told = _token_logprobs(prediction.detail.get("logprobs"))
    if not told:
        return None
    spans = [
        tag("span", text, class_=f"token {_step(value)}", title=f"{math.exp(min(0.0, value)):.1%} ({value:.3f})")
        for text, value in told[:MOST_TOKENS]
    ]
    more = f", the first {MOST_TOKENS:,}" if len(told) > MOST_TOKENS else ""
    words = f"{len(told):,} tokens{more}: the darker, the less likely"
    parts = (tag("summary", f"Probability of each token ({words})"), tag("pre", *spans, class_="reply", tabindex=0))
    return join((tag("details", *parts),))


def _token_logprobs(value: Any) -> list[tuple[str, float]]:
    """Return tokens with their log-probabilities; what has another shape is not shown as if it had this one."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    pairs = [(one.get("token"), one.get("logprob")) for one in value if isinstance(one, dict)]
    whole = len(pairs) == len(value) and all(isinstance(a, str) and isinstance(b, int | float) for a, b in pairs)
    return [(str(text), float(number or 0.0)) for text, number in pairs] if whole else []


SHOWN = 30_000
SIDES = {"assistant": "theirs", "system": "rule"}


def chat(run: OpenRun, shown: Shown) -> Html:
    """Return the whole exchange; the model's own words stand on the other side than ours."""
    return tag("div", *_messages(run, shown), class_="chat")


def _messages(run: OpenRun, shown: Shown) -> Iterator[Html]:
    before = 0
    for turn in shown.request.messages:
        pictures = f" · {len(turn.images)} picture{'s' if len(turn.images) != 1 else ''}" if turn.images else ""
        kind = f"message {SIDES.get(turn.role, 'ours')}"
        yield tag("div", tag("header", turn.role + pictures), *_parts(run, shown, turn, before), class_=kind)
        before += len(turn.images)
    if shown.request.prefix:
        begin = (tag("header", "begin of the answer, given"), tag("pre", shown.request.prefix))
        yield tag("div", *begin, class_="message theirs")
    if len(shown.request.messages) > 2 and shown.prediction.text:
        words = tag("pre", shorten(shown.prediction.text, 600))
        yield tag("div", tag("header", "the reply"), words, class_="message theirs last")


def _parts(run: OpenRun, shown: Shown, turn: Turn, before: int) -> Iterator[Html]:
    """Yield the texts of a message and, where pictures stand between them, each in its place; `before` were shown."""
    for part in turn.arrange(range(before, before + len(turn.images))) if turn.parts else (turn.text,):
        if isinstance(part, str):
            yield tag("pre", shorten(part, SHOWN))
        else:
            thumb = picture(run, shown.prediction.key, f"Picture {part + 1}", n=part)
            yield link(thumb, f"#picture-{part}", class_="part")


REPLY_SHOWN = 30_000
SIBLINGS = 60
_ATTEMPTS = (
    "SELECT at, kind, message FROM attempts WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? "
    "ORDER BY at LIMIT 20"
)


def trial_page(run: OpenRun, shown: Shown, walk: Walk, *, may_write: bool = False) -> Html:
    """Return the page of one stored trial, met on a walk: what stands before and after it is what the walk shows."""
    key = shown.prediction.key
    walked = walk_through(run, walk)
    columns = walked.columns
    place = place_of(columns, key)
    outcome = row_outcome(columns, place) if place is not None else None
    parts: list[Child] = [
        tag("div", tag("h1", shorten(shown.sample.question, 240)), class_="title"),
        tag("p", outcome, " ", tag("span", _name(key), class_="mono muted")),
        _in_short(run, shown, walk),
        _around(run, walk, walked, place),
    ]
    parts += [*_marks(run, walk, key, may_write=may_write), *group_steps(run, columns, key, walk)]
    left = tag(
        "div",
        tag("h2", "What it saw"),
        *videos_of(run, shown),
        pictures_part(run, shown),
        tag("h2", "Messages as sent"),
        chat(run, shown),
    )
    answer = (tag("h2", "What it answered"), _answer(run, shown), *_reasoning(shown), *reply_difference(shown))
    score = (tag("h2", "Score"), *_why(shown), *_scores(shown), *_options(shown))
    place_on_curve = exam_curve(run, key.task, shown.sample)
    right = tag("div", *answer, *score, *place_on_curve, tag("h2", "Facts"), _facts(run, shown))
    parts += [
        *kit_trial(run, shown, columns, walk),
        tag("div", left, right, class_="two"),
        *_siblings(run, columns, key, walk),
    ]
    return shell(f"{key.sample} in {run.name}", parts, crumbs=_crumbs(run, walk, walked, place, key))


def _in_short(run: OpenRun, shown: Shown, walk: Walk) -> Html | None:
    """Return in a line what was expected, what was read and why it is not right: nobody need scroll for that."""
    score = shown.scores[0] if shown.scores else None
    expected, read = shorten(", ".join(shown.sample.answers), 80), shorten((score.answer if score else "") or "", 80)
    said: list[Child] = [("expected ", tag("b", expected))] if expected else []
    said += [("read as ", tag("b", read))] if read else []
    kind = run.error_of(shown.prediction.key)
    if kind:
        said.append(("mistake: ", link(KINDS[kind].title, walk.to(run, why=kind), title=KINDS[kind].rule)))
    parts = [part for one in said for part in (" · ", one)][1:]
    return tag("p", *parts, class_="inshort") if parts else None


def _marks(run: OpenRun, walk: Walk, key: TrialKey, *, may_write: bool) -> Iterator[Child]:
    """Yield what was said of the trial and, where the viewer may write, the form to say more."""
    notes, notice = run.notes(), notes_notice(run)
    yield from (notice, marks_shown(key, notes))
    if may_write and notice is None:
        form = marks_form(f"/run/{run.key}/marks", walk.trial(run, key), key, notes)
        yield tag("details", tag("summary", "Mark this trial"), form, id="marks")


def _crumbs(run: OpenRun, walk: Walk, walked: Walked, place: int | None, key: TrialKey) -> list[Child]:
    """Lead back to the page of the table that this trial stands on, with its filters and its order."""
    at = _step_of(walked, place)
    page = at // walk.look.page + 1 if at is not None else 1
    words = f"trials: {shorten(walk.words, 80)}" if walk.words else "trials"
    trials = link(words, walk.to(run, page=page if page > 1 else ""))
    return run_crumbs(run, walk.task, trials, key.sample, task=walk.task)


def _name(key: TrialKey) -> str:
    return " · ".join([key.sample, *([key.variant] if key.variant != "base" else []), f"inference {key.repeat + 1}"])


def _step_of(walked: Walked, place: int | None) -> int | None:
    found = np.flatnonzero(walked.rows == place) if place is not None else np.zeros(0, np.int64)
    return int(found[0]) if found.size else None


def _around(run: OpenRun, walk: Walk, walked: Walked, place: int | None) -> Html:
    """Return the way on; from a trial that the filter does not show (any more), the way is to its first."""
    columns, rows = walked.columns, walked.rows
    at, told = _step_of(walked, place), f" · {shorten(walk.words, 80)}" if walk.words else ""

    def to(step: int) -> str:
        return walk.trial(run, columns.key(int(rows[step])))

    if at is None:
        first = ("First trial of the filter →", to(0)) if rows.size else None
        return pager(None, f"this trial is not among the {rows.size:,} that match{told}", first, label="Trials")
    before = ("← Previous trial", to(at - 1)) if at > 0 else None
    after = ("Next trial →", to(at + 1)) if at + 1 < rows.size else None
    return pager(before, f"trial {at + 1:,} of {rows.size:,}{told}", after, label="Trials")


def _tabs(panels: Sequence[tuple[str, str, Iterable[Child]]]) -> Html:
    """Return panels of which one is shown, each (name, label, parts); a script only keeps the choice."""
    radios: list[Child] = []
    for place, (name, label, _) in enumerate(panels):
        radio = tag("input", type="radio", name="reply", id=f"reply-{name}", value=name, checked=place == 0)
        radios += [radio, tag("label", label, for_=f"reply-{name}")]
    shown = [tag("div", *parts, class_=f"panel p-{name}") for name, _, parts in panels]
    return tag("div", *radios, *shown, class_="tabs", role="group", aria_label="How the reply is shown")


def _answer(run: OpenRun, shown: Shown) -> Html:
    """Return the reply as Markdown means it, as it came, and with its request as they were sent."""
    text = shown.prediction.text
    panels: list[tuple[str, str, list[Child]]] = []
    drawn = rendered_reply(text, explain_score(shown).span) if text else None
    if drawn is not None:
        panels.append(("rendered", "Rendered", [drawn]))
    panels.append(("text", "As it came", list(_as_it_came(run, shown))))
    return _tabs([*panels, ("raw", "Raw request and reply", list(raw_parts(run, shown)))])


def _as_it_came(run: OpenRun, shown: Shown) -> Iterator[Child]:
    prediction = shown.prediction
    if prediction.failure is not None:
        failure = prediction.failure
        why = f" after {failure.attempts} attempts. {shorten(failure.message, 2000)}"
        yield tag("p", tag("b", f"No reply: {failure.kind.value}"), why, class_="notice")
    elif prediction.loglikelihoods is not None:
        yield likelihood_bars(shown)
    else:
        yield from _reply(run, shown, prediction.text or "")


def _reasoning(shown: Shown) -> Iterator[Child]:
    if reasoning := shown.prediction.reasoning:
        summary = tag("summary", f"Reasoning ({len(reasoning):,} characters)")
        yield tag("details", summary, reply_text(reasoning, most=REPLY_SHOWN, tall=True))


def _reply(run: OpenRun, shown: Shown, text: str) -> Iterator[Child]:
    yield reply_text(text, explain_score(shown).span, most=REPLY_SHOWN, tall=True)
    yield token_colours(shown.prediction)
    if len(text) > REPLY_SHOWN:
        words = f"Download the whole reply ({len(text):,} characters)"
        yield tag("p", link(words, trial_address(run, shown.prediction.key, "reply")))


def _why(shown: Shown) -> Iterator[Html]:
    if sentence := explain_score(shown).sentence:
        yield tag("p", tag("b", "Why: "), sentence, class_="why")


def _scores(shown: Shown) -> Iterator[Child]:
    yield facts([("expected", shorten("\n".join(shown.sample.answers), 2000))])
    if not shown.scores:
        yield tag("p", "Not scored.", class_="muted")
        return
    texts = {"read as": [score.answer for score in shown.scores], "rule": [score.rule for score in shown.scores]}
    texts |= {"reason": [score.reason for score in shown.scores]}
    told = {name: column for name, column in texts.items() if any(column)}  # a column of nothing says nothing
    rows = [_score_row(score, [texts[place] for texts in told.values()]) for place, score in enumerate(shown.scores)]
    yield scrolled("Scores", head("metric", "value", *told), tag("tbody", *rows))
    details = [_pretty(score) for score in shown.scores if score.detail]
    if details:
        pretty = tag("pre", *details, class_="code", tabindex=0)
        yield tag("details", tag("summary", "Details of the scorer"), pretty)


def _score_row(score: Score, told: Sequence[str | None]) -> Html:
    value = tag("td", "–" if score.value is None else f"{score.value:.3g}")
    return row(score.metric, value, *(tag("td", shorten(text or "", 200), class_="text") for text in told))


def _pretty(score: Score) -> str:
    return shorten(msgspec.json.format(msgspec.json.encode({score.metric: score.detail}), indent=1).decode(), 20_000)


def _options(shown: Shown) -> Iterator[Child]:
    request, score = shown.request, shown.scores[0] if shown.scores else None
    if not request.shown:
        return
    rows = []
    for mark, text in zip(request.marks, request.shown, strict=False):
        chosen = score is not None and score.answer == text
        signs = filter(None, ("expected" if text in shown.sample.answers else "", "chosen" if chosen else ""))
        rows.append(row(mark, tag("td", text, class_="text"), tag("td", " and ".join(signs))))
    yield tag("table", tag("caption", "Options as shown"), tag("tbody", *rows))


def _facts(run: OpenRun, shown: Shown) -> Html:
    prediction, timing, usage = shown.prediction, shown.prediction.timing, shown.prediction.usage
    about: list[tuple[str, Any]] = [
        ("finish", prediction.finish),
        ("from the cache", "yes" if prediction.cached else None),
    ]
    if timing is not None:
        about.append(("total", f"{timing.done - timing.sent:.3f} s"))
        if timing.first_token is not None:
            about.append(("first token", f"{timing.first_token - timing.sent:.3f} s"))
    if usage is not None:
        counts = msgspec.to_builtins(usage).items()
        about += [(name.replace("_", " "), f"{value:,}") for name, value in counts if value is not None]
    about += [
        ("parameters", msgspec.json.encode(shown.request.params).decode()),
        ("tags", msgspec.json.encode(shown.sample.tags).decode()),
        ("group", shown.sample.group),
    ]
    for n, sent in enumerate(prediction.images):
        shrunk = f", made smaller from {sent.original[0]}×{sent.original[1]}" if sent.original else ""
        about.append((f"picture {n + 1}", f"{sent.width}×{sent.height} {sent.mime}, {sent.size_bytes:,} bytes{shrunk}"))
    attempts = run.reader.rows(_ATTEMPTS, msgspec.structs.astuple(prediction.key))
    about += [(f"failed attempt {at}", f"{kind}: {shorten(message, 300)}") for at, kind, message in attempts]
    return facts(about)


def _siblings(run: OpenRun, columns: TrialColumns, key: TrialKey, walk: Walk) -> Iterator[Child]:
    rows = np.flatnonzero(columns.rows_with("sample", key.sample))
    if rows.size < 2:
        return
    cards = []
    for place in rows[:SIBLINGS].tolist():
        other = columns.key(place)
        shown = read_trial(run.reader, other)
        if shown is not None:
            text = shown.prediction.text if shown.prediction.failure is None else shown.prediction.failure.message
            outcome = row_outcome(columns, place)
            here = "true" if other == key else None
            to = walk.trial(run, other)
            name = link(f"{other.variant} · {other.repeat + 1}", to, aria_current=here)
            reply = reply_text(text, shown.span, most=600)
            cards.append(tag("article", tag("p", outcome, " ", name), reply, class_="card"))
    yield tag("h2", f"All {rows.size:,} trials of this sample: variants and inferences side by side")
    yield tag("div", *cards, class_="columns", tabindex=0, role="region", aria_label="All trials of this sample")
