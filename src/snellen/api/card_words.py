"""A card for people: what the benchmark is, what is quoted, its protocols, its pitfalls, where facts were seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import UsageError
from ..core.tasks import Prompt, Task
from ..core.types import Form
from ..data.atlas.card_sources import CardSource, read_card_sources
from ..data.atlas.peer_cards import versioned
from ..data.atlas.protocols import About, about_card, protocol_texts
from ..data.catalog import Catalog
from ..scoring.protocols.peer_scores import FALLBACK_WORDS


def describe_card(name: str, catalogs: Sequence[Path] = ()) -> str:
    """Return a card as a page of Markdown; a task without protocols is refused, since it has nothing to say."""
    catalog = Catalog(catalogs)
    table = catalog.task_table(name)
    if not table.get("protocols"):
        raise UsageError(f"task {name!r} is no card of a published benchmark: `snellen tasks {name}` prints it")
    about = about_card(table, name)
    lines = [
        *_head(name, table, about),
        *_protocols(catalog, name, table),
        *_list("Where numbers part", about.pitfalls),
        *_data(catalog, name, about),
        *_list("Not here", about.missing),
        *_sources_of_facts(about),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _head(name: str, table: Mapping[str, Any], about: About) -> Iterator[str]:
    yield from (f"# {table.get('title', name)}: why is my number different?", "")
    facts = {"Card": f"`{name}`", "Size": about.size, "Quoted": about.quoted, "Judge": about.judge}
    facts["Licence"] = str(table.get("licence", ""))
    yield from (f"- **{label}**: {text}" for label, text in facts.items() if text)
    yield from ("", f"**What Snellen does.** {about.choice}", "")


def _protocols(catalog: Catalog, name: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Protocols", "", "| protocol | how it asks, reads and counts | what its tool does with the unread |")
    yield "|---|---|---|"
    for protocol, text in protocol_texts(table).items():
        fallback = FALLBACK_WORDS.get(text.fallback, "nothing of its own")
        yield f"| `{versioned(protocol)}` | {text.why} | {fallback} |"
    yield ""
    for protocol in protocol_texts(table):
        task = catalog.task(name, protocol=protocol)
        yield from _parts(catalog, task)


def _parts(catalog: Catalog, task: Task) -> Iterator[str]:
    told = ", ".join(f"{key} {value}" for key, value in task.score_options.items()) or ", ".join(task.scorers)
    limits = f"{task.params.max_tokens or 'no limit of'} tokens"
    figures = ", ".join(f"{figure.name} ({figure.rule})" for figure in task.figures)
    quoted = f"; quoted by {task.headline}" if task.headline else ""
    prompt = _prompt(catalog, task)
    shown = _frames(prompt) if task.dimension == "video" else ""
    yield f"`{versioned(task.protocol)}`: {limits}; {shown}{told}{quoted}{f'; {figures}' if figures else ''}."
    yield from ("", "```text", *_prompt_text(prompt).splitlines(), "```", "")


def _frames(prompt: Prompt) -> str:
    """Say which frames of a video are shown, and with which subtitles."""
    subtitles = f", subtitles {prompt.video.subtitles}" if prompt.video.subtitles != "none" else ""
    return f"frames {prompt.video.frames}{subtitles}; "


def _prompt(catalog: Catalog, task: Task) -> Prompt:
    return catalog.prompt(task, Form.CHOICE if task.form in (Form.AUTO, Form.CHOICE) else task.form)


def _prompt_text(prompt: Prompt) -> str:
    """Return a prompt with its slots open, as people read it."""
    wordings = prompt.instructions or prompt.hidden
    instruction = wordings[0] if wordings else ""
    options = "\n".join(prompt.option_format.format(mark=mark, text="…") for mark in "AB")
    text = prompt.template.replace("{instruction}", instruction).replace("{options}", options)
    text = text.replace("{letters}", "A, B")
    return text.strip("\n")


def _data(catalog: Catalog, name: str, about: About) -> Iterator[str]:
    sources: dict[str, CardSource] = {}
    for protocol in protocol_texts(catalog.task_table(name)):
        sources |= read_card_sources(catalog.task(name, protocol=protocol).dataset, f"task {name!r}")
    if not sources:
        return
    yield from ("## Data", "")
    for shape, source in sources.items():
        rows = f"; {source.count:,} rows" if source.count else ""
        yield f"- **{shape}**: {_place(source)}{rows}{_needs_words(source)}"
    if about.official:
        yield f"- **official**: {about.official}"
    yield ""


def _needs_words(source: CardSource) -> str:
    """Return what must be known of a shape before it is asked."""
    beside = f"; beside it {', '.join(f'`{file}`' for file in source.beside)}" if source.beside else ""
    if source.templates:
        beside += f"; the words of its questions in `{source.templates.file}`, from your copy of the benchmark"
    beside += f"; {source.bring}" if source.bring else ""
    refused = f"; cannot be asked: {source.refuse}" if source.refuse else ""
    return f"{beside}{refused}{f'; {source.note}' if source.note else ''}"


def _place(source: CardSource) -> str:
    if source.ids:
        parts = [" or ".join(f"`{name}`" for name in source.ids)]
        parts += [f"config `{source.config}`"] if source.config else []
        parts += [f"split `{source.split}`"] if source.split else []
        return ", ".join(parts)
    files = ", ".join(f"`{file}`{f' (MD5 {digest})' if digest else ''}" for file, digest in source.files.items())
    return files or f"rows with {', '.join(f'`{column}`' for column in source.columns)}"


def _list(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield from (f"## {title}", "", *(f"- {text}" for text in texts), "")


def _sources_of_facts(about: About) -> Iterator[str]:
    if about.marks:
        yield f"Seen in: {'; '.join(about.marks)}."
    if about.from_memory:
        yield f"From memory, unchecked: {'; '.join(about.from_memory)}."


def describe_suite(name: str, catalogs: Sequence[Path] = ()) -> dict[str, Any]:
    """Return a suite: its members with a card and without, and how its headline is made."""
    catalog = Catalog(catalogs)
    suite, known = catalog.suite(name), set(catalog.names("datasets"))
    return {
        "name": name,
        "title": suite.title,
        "tasks": [task for task in suite.names if task in known],
        "missing": [task for task in suite.names if task not in known],
        "headline": suite.headline,
        "members": [
            {"task": one.task, "metric": one.metric, "scale": one.scale, "weight": one.weight} for one in suite.members
        ],
        "protocol": suite.protocol,
        "notes": suite.notes,
        "from_memory": list(suite.from_memory),
    }


def describe_option_of_others(flag: str) -> str:
    """Say which other system's command has an option, and what is the same here; nothing where none has it."""
    for command, card in Catalog().cards("movers"):
        for names, _, ours, *why in card["flags"]:
            if flag in names.replace("_", "-").split():
                whole = "" if ours == "!" else f"snellen {command} takes its whole line"
                here = [f"{ours} here" if ours.startswith("-") else "", *why, whole]
                return f"it is {card['title']}'s; {'; '.join(filter(None, here))}"
    return ""
