"""`snellen mc` and `snellen niah`: the page-image jobs with their scripts' own arguments, down the ordinary line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from ..api.settings import RunSettings
from ..core.config import parse_assignment
from ..core.errors import UsageError
from .model_file import PAGE_SCRIPT_KEYS, read_model_file
from .options import COUNT, JSON, NO_CACHE, OVERRIDES, PATH, QUIET, SEED, add_options, defaulted, flag, print_json
from .run import command_line, read_key

DEFAULT_URL = "http://localhost:8000/v1"
MC_EXAMPLE = """
\b
Example:
  snellen mc --data-json data/longbenchv2/data.json --images-dir data/vqa --output results/qwen3 \\
      --config config/vqa/qwen3-vl.json --base_url http://localhost:8000/v1 --max_workers 128
"""
CONFIG_HELP = "Model file (model_name, max_tokens, prompt_template …) or a ready one: qwen3-vl, kimi-vl …"
PENALTY_HELP = "Overrides the model file."
PROFILE_HELP = "Read answers as another tool does: vqa-scripts (the scripts' own rules), longbench-official."
NIAH_EXAMPLE = """
\b
Example:
  snellen niah --data data/niah/data.json --images data/niah/longbenchv2_img/images --output results/niah/model.json \\
      --config config/vqa/qwen3-vl.json --base_url http://localhost:8000/v1
"""
SHARED = add_options(
    click.option("--config", "-c", "config_file", type=PATH, help=CONFIG_HELP),
    click.option("--model", help="provider/name instead of the model file's, e.g. reader/tesseract."),
    click.option("--base_url", "--base-url", default=None, help=f"Server.  [default: {DEFAULT_URL}]"),
    click.option("--api_key", "--api-key", help="The key itself (prefer --api-key-env)."),
    click.option("--api_key_env", "--api-key-env", help="Environment variable that holds the key."),
    defaulted("--max_workers", "--max-workers", type=COUNT, default=128),
    click.option("--presence_penalty", "--presence-penalty", type=float, help=PENALTY_HELP),
    click.option("--limit", type=COUNT, help="Use the first N documents of each variant."),
    click.option("--max-images", type=COUNT, help="Pages the model takes in one request."),
    click.option("--max-visual-tokens", type=COUNT, help="Visual tokens it takes, by --family's formula."),
    defaulted("--family", default="qwen2.5-vl", help="Model family for visual tokens."),
    defaulted("--too-long", default="skip", help="Beyond them: skip, middle, dpi or chunk."),
    defaulted("--tokenizer", default="chars/4.2", help="Counts context length: cl100k, o200k, chars/N, a folder."),
    click.option("--profile", help=PROFILE_HELP),
    SEED,
    OVERRIDES,
    NO_CACHE,
    QUIET,
    JSON,
)


@click.command(epilog=MC_EXAMPLE)
@click.option("--data-json", "--data_json", "data", required=True, type=PATH, help="LongBench-v2 data.json.")
@click.option("--images-dir", "--images_dir", "images", required=True, type=PATH, help="Parent of VARIANT/images/.")
@click.option("--output", "-o", required=True, type=PATH, help="Folder for VARIANT_mc_eval.json.")
@SHARED
def mc(*, data: Path, images: Path, output: Path, quiet: bool, as_json: bool, **flags: Any) -> int:
    """Multiple choice over page images: every subfolder with images/ is a variant, each gets its result file."""
    from ..api.datasets.page_questions import Files, run_choice
    from .run_output import TerminalWatcher

    watcher = TerminalWatcher(quiet=quiet)
    result, files = run_choice(make_settings(flags), Files(data, images, output), watcher)
    for file in files:
        _print(file, as_json)
    return _exit_code(result)


@click.command(epilog=NIAH_EXAMPLE)
@click.option("--data", "-d", required=True, type=PATH, help="Needle data.json.")
@click.option("--images", "-i", required=True, type=PATH, help="Folder of page images.")
@click.option("--output", "-o", required=True, type=PATH, help="Result file.")
@flag("--case_sensitive", "--case-sensitive", help="Match answers with their case.")
@SHARED
def niah(
    *, data: Path, images: Path, output: Path, case_sensitive: bool, quiet: bool, as_json: bool, **flags: Any
) -> int:
    """Needle questions over page images."""
    from ..api.datasets.page_questions import Files, run_needles
    from .run_output import TerminalWatcher

    config = str(flags["config_file"] or flags["model"])
    if case_sensitive:
        flags["overrides"] = (*flags["overrides"], 'scorers=["needle-case"]')
    result = run_needles(make_settings(flags), Files(data, images, output), config, TerminalWatcher(quiet=quiet))
    _print(output, as_json)
    return _exit_code(result)


def make_settings(flags: dict[str, Any]) -> RunSettings:
    """Turn the flags and the model file into settings; flags win."""
    needed = ("model_name", "max_tokens") if not flags["model"] else ()
    file = read_model_file(flags["config_file"], needed, PAGE_SCRIPT_KEYS)
    in_file, url_in_file = file.pop("model", None), file.pop("base_url", None)
    model = flags["model"] or in_file
    if not model:
        raise UsageError("name the model: --config FILE with model_name, or --model provider/name")
    if flags["presence_penalty"] is not None:
        file["extra_body"] = (file.get("extra_body") or {}) | {"presence_penalty": flags["presence_penalty"]}
    base_url = flags["base_url"] or url_in_file or (DEFAULT_URL if model.startswith("openai/") else None)
    return RunSettings(
        tasks=(),
        model=model,
        base_url=base_url,
        api_key=read_key(flags["api_key"], flags["api_key_env"], None),
        max_workers=flags["max_workers"],
        overrides=_overrides(flags),
        profile=flags["profile"],
        seed=flags["seed"],
        cache=not flags["no_cache"],
        allow_missing_images=True,
        command=command_line(sys.argv),
        **file,
    )


def _overrides(flags: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    limits = {"policy": flags["too_long"], "family": flags["family"]}
    limits |= {name: flags[name] for name in ("max_images", "max_visual_tokens") if flags[name] is not None}
    own: list[tuple[str, Any]] = [("dataset.limits", limits), ("dataset.tokenizer", flags["tokenizer"])]
    if flags["limit"]:
        own.append(("dataset.max_documents", flags["limit"]))
    return (*own, *(parse_assignment(text) for text in flags["overrides"]))


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
