"""`snellen mc` and `snellen niah`: the page-image jobs with their scripts' own arguments, down the ordinary line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from ...api.settings import RunSettings
from ...cli.options import (
    COUNT,
    JSON,
    PATH,
    QUIET,
    SettingsCommand,
    add_options,
    defaulted,
    flag,
    print_json,
    setting_options,
)
from ...cli.run import make_settings
from ...core.errors import UsageError

DEFAULT_URL = "http://localhost:8000/v1"
MC_EXAMPLE = """
\b
Example:
  snellen mc --data-json data/longbenchv2/data.json --images-dir data/vqa --output results/qwen3 \\
      --config config/vqa/qwen3-vl.json --base_url http://localhost:8000/v1 --max_workers 128
"""
NIAH_EXAMPLE = """
\b
Example:
  snellen niah --data data/niah/data.json --images data/niah/longbenchv2_img/images --output results/niah/model.json \\
      --config config/vqa/qwen3-vl.json --base_url http://localhost:8000/v1
"""
WORKERS = 128
SAID_OTHERWISE = {
    "config_file": {
        "help": "Model file (model_name, max_tokens, prompt_template …) or a ready one: qwen3-vl, kimi-vl …"
    },
    "base_url": {"help": f"Server.  [default: {DEFAULT_URL}]"},
    "max_workers": {"help": f"Requests in flight at most.  [default: {WORKERS}]"},
}
SHARED = add_options(
    click.option("--limit", type=COUNT, help="Use the first N documents of each variant."),
    click.option("--max-images", type=COUNT, help="Pages the model takes in one request."),
    click.option("--max-visual-tokens", type=COUNT, help="Visual tokens it takes, by --family's formula."),
    defaulted("--family", default="qwen2.5-vl", help="Model family for visual tokens."),
    defaulted("--too-long", default="skip", help="Beyond them: skip, middle, dpi or chunk."),
    defaulted("--tokenizer", default="chars/4.2", help="Counts context length: cl100k, o200k, chars/N, a folder."),
    setting_options("mc", **SAID_OTHERWISE),
    QUIET,
    JSON,
)


@click.command(cls=SettingsCommand, honours="mc", epilog=MC_EXAMPLE)
@click.option("--data-json", "data", required=True, type=PATH, help="LongBench-v2 data.json.")
@click.option("--images-dir", "images", required=True, type=PATH, help="Parent of VARIANT/images/.")
@click.option("--output", "-o", required=True, type=PATH, help="Folder for VARIANT_mc_eval.json.")
@SHARED
def mc(*, data: Path, images: Path, output: Path, quiet: bool, as_json: bool, **flags: Any) -> int:
    """Multiple choice over page images: every subfolder with images/ is a variant, each gets its result file."""
    from ...cli.run_output import TerminalWatcher
    from .questions import Files, run_choice

    watcher = TerminalWatcher(quiet=quiet)
    result, files = run_choice(page_settings(flags), Files(data, images, output), watcher)
    for file in files:
        _print(file, as_json)
    return _exit_code(result)


@click.command(cls=SettingsCommand, honours="mc", epilog=NIAH_EXAMPLE)
@click.option("--data", "-d", required=True, type=PATH, help="Needle data.json.")
@click.option("--images", "-i", required=True, type=PATH, help="Folder of page images.")
@click.option("--output", "-o", required=True, type=PATH, help="Result file.")
@flag("--case-sensitive", help="Match answers with their case.")
@SHARED
def niah(
    *, data: Path, images: Path, output: Path, case_sensitive: bool, quiet: bool, as_json: bool, **flags: Any
) -> int:
    """Needle questions over page images."""
    from ...cli.run_output import TerminalWatcher
    from .questions import Files, run_needles

    config = str(flags["config_file"] or flags["model"])
    if case_sensitive:
        flags["overrides"] = (*flags["overrides"], 'scorers=["needle-case"]')
    result = run_needles(page_settings(flags), Files(data, images, output), config, TerminalWatcher(quiet=quiet))
    _print(output, as_json)
    return _exit_code(result)


def page_settings(flags: Mapping[str, Any]) -> RunSettings:
    """Turn the flags and the model file into settings; pages that are missing are counted, not refused."""
    settings = make_settings("mc", flags, max_workers=WORKERS, allow_missing_images=True)
    if flags["config_file"] and not flags["model"] and settings.max_tokens is None:
        raise UsageError(f"{flags['config_file']}: key 'max_tokens' is missing")
    limits = {"policy": flags["too_long"], "family": flags["family"]}
    limits |= {name: flags[name] for name in ("max_images", "max_visual_tokens") if flags[name] is not None}
    own: list[tuple[str, Any]] = [("dataset.limits", limits), ("dataset.tokenizer", flags["tokenizer"])]
    if flags["limit"]:
        own.append(("dataset.max_documents", flags["limit"]))
    url = settings.base_url or (DEFAULT_URL if settings.model.startswith("openai/") else None)
    return msgspec.structs.replace(settings, base_url=url, overrides=(*own, *settings.overrides))


def _print(path: Path, as_json: bool) -> None:
    content = msgspec.json.decode(path.read_bytes())
    if as_json:
        if isinstance(content, dict):
            content.pop("results", None)
        print_json({"file": str(path), "content": content})
    elif isinstance(content, dict):
        skipped = f", {len(content['skipped'])} skipped" if content["skipped"] else ""
        low, high = content["ci95"] or ["–", "–"]
        share = f"{content['correct']}/{content['total_questions']} = {content['accuracy']} % [{low}, {high}]"
        click.echo(f"{path}: {share}, {content['errors']} errors{skipped}")
    else:
        click.echo(str(path))


def _exit_code(result: Any) -> int:
    if result.interrupted:
        return 130
    return 1 if result.failed else 0
