"""Writes the tables of docs/models.md from dialects, cards and tests. `--check` only compares."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
PAGE = ROOT / "docs" / "models.md"
CATALOG = ROOT / "src" / "snellen" / "catalog"
SHOWN = ROOT / "tests" / "integration" / "test_each_provider.py"
DIALECTS = "<!-- dialects: written by tools/provider_table.py -->\n"
THINGS = "<!-- shown: written by tools/provider_table.py -->\n"
MARK = "<!-- providers: written by tools/provider_table.py -->\n"
DIALECT_HEAD = (
    "| dialect | stream | pictures | likelihood | `--reasoning` | batches | has no name for | shown by tests |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
HEAD = (
    "| provider | who | key | reasoning | pictures | batches | shown | from memory |\n"
    "|---|---|---|---|---|---|---|---|\n"
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


def pictures(limits: dict[str, Any]) -> str:
    """Say what is known of the largest picture."""
    told = [f"≤ {limits['max_side']} px"] if limits.get("max_side") else []
    told += [f"≤ {limits['max_bytes'] / 1e6:g} MB"] if limits.get("max_bytes") else []
    return ", ".join(told) or "–"


def dialect_rows() -> str:
    """Return the lines of our own dialects, from their classes."""
    from snellen.core.protocols import Capability
    from snellen.kits.clouds.bedrock_model import Bedrock
    from snellen.kits.clouds.vertex_model import VertexClaude, VertexGemini
    from snellen.model.served.provider_card import DIALECTS as KNOWN

    reasoning = tomllib.loads((CATALOG / "servers" / "reasoning.toml").read_text(encoding="utf-8"))["styles"]
    tested = {name.partition("/")[0] for name in shown_models()["OWN"]}
    named = [*((name, kind()) for name, kind in KNOWN.items()), ("vertex (Gemini)", VertexGemini())]
    named += [("vertex (Claude)", VertexClaude()), ("bedrock", Bedrock())]
    lines = []
    for name, dialect in named:
        can = [Capability.STREAM in dialect.capabilities, Capability.LIKELIHOOD in dialect.capabilities]
        policy = dialect.image_policy
        wishes = ["N" if wish == "tokens" else wish for wish in reasoning[dialect.reasoning]]
        cells = [
            f"`{name}`",
            "yes" if can[0] else "no",
            pictures({"max_side": policy.max_side, "max_bytes": policy.max_bytes}),
            "yes" if can[1] else "no",
            ", ".join(wishes),
            "yes" if dialect.batch else "no",
            ", ".join(f"`{one}`" for one in sorted(dialect.unknown)) or "–",
            "yes" if name.split()[0] in tested else "no",
        ]
        lines.append("| " + " | ".join(cells) + " |\n")
    return "".join(lines)


def shown_rows() -> str:
    """Return what the tests show, and of which models."""
    shown = shown_models()
    own = ", ".join(f"`{name.partition('/')[0]}`" for name in shown["OWN"] if not name.startswith("vertex/claude"))
    cards = ", ".join(f"`{card}`" for card in shown["CARDS"])
    of = f"Each for {own} (Vertex with Gemini and with Claude) and the cards {cards}:\n\n"
    lines = [f"| {what} | `{test}` |\n" for what, test in shown["SHOWN_BY"].items()]
    return of + "| what | test |\n|---|---|\n" + "".join(lines)


def row(path: Path) -> str:
    """Return the line of one card."""
    card = tomllib.loads(path.read_text(encoding="utf-8"))
    shown = shown_models()
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


def page() -> str:
    """Return the page with its tables."""
    cards = sorted((CATALOG / "providers").glob("*.toml"))
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    before, mark, rest = text.partition(DIALECTS)
    after = rest[rest.index("\n\n", rest.index("|---")) :]
    text = before + mark + "\n" + DIALECT_HEAD + dialect_rows().rstrip("\n") + after
    before, mark, rest = text.partition(THINGS)
    after = rest[rest.index("\n\n", rest.index("|---")) :]
    text = before + mark + "\n" + shown_rows().rstrip("\n") + after
    return text + MARK + "\n" + HEAD + "".join(map(row, cards))


if __name__ == "__main__":
    wanted = page()
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == wanted else "docs/models.md: run tools/provider_table.py")
    PAGE.write_text(wanted, encoding="utf-8")
