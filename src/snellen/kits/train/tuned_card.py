"""A training's record and figures to a model card: what it was made of and what it gained, for people and machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .tuning import TUNED, TrainingRecord, read_record

CARD, FIGURES = "README.md", "gains.json"
LICENCE_FILES = ("LICENSE", "LICENSE.txt", "LICENCE", "LICENSE.md")


def write_training_card(folder: Path) -> Path:
    """Write the card into the tuned model's folder, over the one TRL leaves there."""
    record = read_record(folder)
    lines = [*_head(record), *_data(record, folder), *_recipe(record), *_gains(folder), *_versions(record)]
    path = folder / TUNED / CARD
    part = path.with_name(f".{CARD}.part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def licence_of(base: str) -> str:
    """Return what the base's folder says of its licence; a tuned model goes under it too."""
    folder = Path(base.removeprefix("hf/"))
    card = folder / CARD
    if card.is_file():
        for line in card.read_text("utf-8", "replace").splitlines()[:60]:
            if line.startswith("license:"):
                return line.partition(":")[2].strip()
    named = next((name for name in LICENCE_FILES if (folder / name).is_file()), None)
    return f"see {named} of the base" if named else "unknown: the base's folder names none; ask its publisher"


def _head(record: TrainingRecord) -> list[str]:
    recipe = record.recipe
    how = recipe["training"]
    kind = "a LoRA adapter of" if how["weights"] == "lora" else "full weights from"
    lines = ["---", "library_name: peft" if how["weights"] == "lora" else "library_name: transformers", "---"]
    lines += [f"# {Path(recipe['output']).name}: {kind} {Path(recipe['model']).name}", ""]
    lines.append(f"Trained by Snellen {record.snellen}, stage {recipe['stage']}, trainer {how['trainer']}.")
    return [*lines, "", f"Licence of the base: {licence_of(recipe['model'])}.", ""]


def _data(record: TrainingRecord, folder: Path) -> list[str]:
    lines = ["## Data", "", "| source | weight | records | rows | rationales | hash |", "|---|---:|---:|---:|---:|---|"]
    for source in record.data["sources"]:
        cells = (source[name] for name in ("weight", "records", "rows", "rationales", "sha256"))
        lines.append(f"| {Path(source['path']).name} | {' | '.join(map(str, cells))} |")
    lines += ["", f"{record.data['pictures']} pictures, {record.data['missing']} missing and left out.", ""]
    overlap = folder / "overlap.json"
    if overlap.is_file():
        found = json.loads(overlap.read_text("utf-8"))
        count = len(found["overlaps"])
        names = ", ".join(Path(name).name for name in found["against"])
        verdict = f"**{count} items are shared and were trained on**" if count else "nothing is shared"
        lines += [f"Compared with {names} (files, pictures alike, passages of text): {verdict}.", ""]
    else:
        lines += ["Not compared with any benchmark: figures on one may be those of a leak.", ""]
    return lines


def _recipe(record: TrainingRecord) -> list[str]:
    keep = {name: value for name, value in record.recipe.items() if name not in ("output", "catalogs", "model", "data")}
    lines = ["## Recipe", "", "```json", json.dumps(keep, indent=1), "```", ""]
    final = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in record.final.items())
    lines += [f"Ended with {final}." if final else "Not finished.", ""]
    return [*lines, *(f"- {event}" for event in record.events), ""] if record.events else lines


def _gains(folder: Path) -> list[str]:
    path = folder / FIGURES
    if not path.is_file():
        return ["## Before and after", "", "Not measured: `snellen train evaluate BASE TUNED` does it.", ""]
    figures: dict[str, Any] = json.loads(path.read_text("utf-8"))
    head = ("| task | figure | before | after | difference | 95 % |", "|---|---|---:|---:|---:|---|")
    lines = ["## Before and after", "", *head]
    lines += [gain_line(gain) for gain in figures["gains"]]
    return [*lines, ""]


def gain_line(gain: dict[str, Any]) -> str:
    """Return one gain as a row of a table."""
    values = [_percent(gain[name]) for name in ("before", "after")]
    change = "–" if gain["difference"] is None else f"{100 * gain['difference']:+.1f}"
    interval = "–" if not gain["ci95"] else f"{100 * gain['ci95'][0]:+.1f} … {100 * gain['ci95'][1]:+.1f}"
    return f"| {gain['task']} | {gain['figure']} | {' | '.join(values)} | {change} | {interval} |"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _versions(record: TrainingRecord) -> list[str]:
    named = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    base = ", ".join(f"{name} {value}" for name, value in record.base.items())
    return ["## Made with", "", named, "", f"Base: {base}.", ""]
