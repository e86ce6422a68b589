"""A hook of `make docs`: the pages of Reference that are made from cards and commands, and what the search leaves out.

No file is written: the pages exist in the site only, and tools/docs_words.py counts them apart.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
CATALOG = ROOT / "src" / "snellen" / "catalog"
SHOWN = ROOT / "tests" / "integration" / "test_each_provider.py"
CARDS_HEAD = """# Benchmarks by name

What `snellen tasks show NAME` prints, one page a card: protocols with their prompts, what other tools do, where numbers
differ, what Snellen does, where the data lies.

| card | benchmark | size | quoted | headline | protocols | data |
|---|---|---|---|---|---|---|
"""
PROVIDERS_HEAD = """# Providers

Made from the dialects, the cards in `catalog/providers` and the tests. How to name one: [served models](models.md).
Nothing here was tried with a real key: *shown* is against the [mock server](mock-server.md), which speaks as each does.

## Dialects

| dialect | stream | pictures | likelihood | `--reasoning` | batches | has no name for | shown |
|---|---|---|---|---|---|---|---|
"""


def generated() -> dict[str, str]:
    """Return every page that is made, by its address in the site."""
    written = {"judge-cards.md": judge_page(), "providers.md": provider_page(), "commands.md": command_page()}
    return {**card_pages(), **written}


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the generated pages to the site."""
    from mkdocs.structure.files import File

    for uri, text in generated().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the decisions out of the search, which they would fill."""
    if page.file.src_uri.startswith("adr/"):
        page.meta["search"] = {"exclude": True}
    return markdown


def card_pages() -> dict[str, str]:
    """Return a page for each card of a published benchmark, and their list."""
    from snellen.api.card_words import describe_card
    from snellen.data.catalog import Catalog

    catalog = Catalog()
    cards = {name: catalog.task_table(name) for name in sorted(catalog.names("datasets"))}
    cards = {name: card for name, card in cards.items() if card.get("protocols")}
    rows = "".join(f"| {' | '.join(card_cells(name, card))} |\n" for name, card in cards.items())
    return {"cards/index.md": CARDS_HEAD + rows} | {f"cards/{name}.md": describe_card(name) for name in cards}


def card_cells(name: str, card: Mapping[str, Any]) -> list[str]:
    """Return the line of one card."""
    about = card.get("about") or {}
    sources = card["dataset"].get("sources") or {}
    files = (sources.get("official") or {}).get("files", ())
    shapes = [*(shape for shape in sources if shape != "official" or not files), *(f"`{file}`" for file in files)]
    return [
        f"[`{name}`]({name}.md)",
        card.get("title", name),
        about.get("size", ""),
        about.get("quoted", ""),
        f"`{card.get('headline', 'accuracy')}`",
        ", ".join(card["protocols"]),
        ", ".join(shapes) or "a table, with the videos beside it",
    ]


def judge_page() -> str:
    """Return the table of judges, from their cards."""
    lines = ["# Judges\n\nThe cards in `catalog/judges`. How to ask one: [judges](judges.md).\n"]
    lines += [
        "| judge | what it says | metric | without a judge | votes | published numbers |",
        "|---|---|---|---|---|---|",
    ]
    for path in sorted((CATALOG / "judges").glob("*.toml")):
        card = tomllib.loads(path.read_text(encoding="utf-8"))
        names = (f"`{card.get(key, '')}`" if card.get(key) else "–" for key in ("metric", "without_judge"))
        cells = (f"`{path.stem}`", card.get("title", ""), *names, str(card.get("votes", 1)), card.get("published", "–"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def provider_page() -> str:
    """Return the tables of dialects, of what the tests show, and of providers."""
    shown = shown_models()
    own = ", ".join(f"`{name.partition('/')[0]}`" for name in shown["OWN"] if not name.startswith("vertex/claude"))
    cards = ", ".join(f"`{card}`" for card in shown["CARDS"])
    tests = "".join(f"| {what} | `{test}` |\n" for what, test in shown["SHOWN_BY"].items())
    rows = "".join(provider_row(path, shown) for path in sorted((CATALOG / "providers").glob("*.toml")))
    return (
        f"{PROVIDERS_HEAD}{dialect_rows(shown)}\n## What is shown\n\n"
        f"Each for {own} (Vertex with Gemini and with Claude) and the cards {cards}:\n\n"
        f"| what | test |\n|---|---|\n{tests}\n## Providers\n\n"
        "| provider | who | key | reasoning | pictures | batches | shown | from memory |\n"
        f"|---|---|---|---|---|---|---|---|\n{rows}"
    )


def shown_models() -> dict[str, Any]:
    """Return what the matrix of tests names: OWN, CARDS and SHOWN_BY, as they stand in its source."""
    tree = ast.parse(SHOWN.read_text(encoding="utf-8"))
    assigned = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return {name: ast.literal_eval(assigned[name]) for name in ("OWN", "CARDS", "SHOWN_BY")}


def pictures(limits: Mapping[str, Any]) -> str:
    """Say what is known of the largest picture."""
    told = [f"≤ {limits['max_side']} px"] if limits.get("max_side") else []
    told += [f"≤ {limits['max_bytes'] / 1e6:g} MB"] if limits.get("max_bytes") else []
    return ", ".join(told) or "–"


def dialect_rows(shown: Mapping[str, Any]) -> str:
    """Return the lines of our own dialects, from their classes."""
    from snellen.core.protocols import Capability
    from snellen.kits.clouds.bedrock_model import Bedrock
    from snellen.kits.clouds.vertex_model import VertexClaude, VertexGemini
    from snellen.model.served.provider_card import DIALECTS as KNOWN

    reasoning = tomllib.loads((CATALOG / "servers" / "reasoning.toml").read_text(encoding="utf-8"))["styles"]
    tested = {name.partition("/")[0] for name in shown["OWN"]}
    named = [*((name, kind()) for name, kind in KNOWN.items()), ("vertex (Gemini)", VertexGemini())]
    named += [("vertex (Claude)", VertexClaude()), ("bedrock", Bedrock())]
    lines = []
    for name, dialect in named:
        policy = dialect.image_policy
        wishes = ["N" if wish == "tokens" else wish for wish in reasoning[dialect.reasoning]]
        cells = [
            f"`{name}`",
            "yes" if Capability.STREAM in dialect.capabilities else "no",
            pictures({"max_side": policy.max_side, "max_bytes": policy.max_bytes}),
            "yes" if Capability.LIKELIHOOD in dialect.capabilities else "no",
            ", ".join(wishes),
            "yes" if dialect.batch else "no",
            ", ".join(f"`{one}`" for one in sorted(dialect.unknown)) or "–",
            "yes" if name.split()[0] in tested else "no",
        ]
        lines.append("| " + " | ".join(cells) + " |\n")
    return "".join(lines)


def provider_row(path: Path, shown: Mapping[str, Any]) -> str:
    """Return the line of one card of a provider."""
    card = tomllib.loads(path.read_text(encoding="utf-8"))
    tested = path.stem in shown["CARDS"] or any(name.startswith(f"{path.stem}/") for name in shown["OWN"])
    cells = [
        f"`{path.stem}/{card['example']}`",
        card["title"],
        " or ".join(f"`{name}`" for name in card["key_env"]) or "–",
        card.get("reasoning", "–"),
        pictures(card.get("images", {})),
        "yes" if card.get("batch") else "–",
        "yes" if tested else "–",
        ", ".join(card.get("from_memory", [])) or "–",
    ]
    return "| " + " | ".join(cells) + " |\n"


def command_page() -> str:
    """Return every command with every option, as `--help-all` prints them."""
    from snellen.cli.main import cli

    context = click.Context(cli, info_name="snellen")
    parts = ["# Commands and flags\n\nWhat `snellen COMMAND --help-all` prints; `--max_tokens` is `--max-tokens`.\n"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None:
            parts += command_parts(command, context, name, 2)
    return "\n".join(parts)


def command_parts(command: click.Command, parent: click.Context, name: str, level: int) -> Iterator[str]:
    """Yield a command and those below it: heading, then its whole help."""
    from snellen.cli.options import WHOLE_HELP

    context = click.Context(command, info_name=name, parent=parent, max_content_width=110, terminal_width=110)
    context.meta[WHOLE_HELP] = True
    yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from command_parts(found, context, below, min(level + 1, 4))
