"""`snellen mc` and `snellen niah`: the page-image jobs with the arguments their scripts have, run down the ordinary line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from ..api.settings import RunSettings
from ..core.config import parse_assignment
from ..core.errors import UsageError
from .run import command_line, read_key, read_model_file

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
SHARED = (
    click.option(
        "--config",
        "-c",
        "config_file",
        type=click.Path(path_type=Path),
        help="Model file: model_name, max_tokens, prompt_template …",
    ),
    click.option("--model", help="provider/name instead of the model file's, e.g. reader/tesseract."),
    click.option("--base_url", "--base-url", "base_url", default=None, help=f"Server.  [default: {DEFAULT_URL}]"),
    click.option("--api_key", "--api-key", "api_key", help="The key itself (prefer --api-key-env)."),
    click.option("--api_key_env", "--api-key-env", "api_key_env", help="Environment variable that holds the key."),
    click.option(
        "--max_workers", "--max-workers", "max_workers", type=click.IntRange(min=1), default=128, show_default=True
    ),
    click.option(
        "--presence_penalty", "--presence-penalty", "presence_penalty", type=float, help="Overrides the model file."
    ),
    click.option("--limit", type=click.IntRange(min=1), help="Use the first N documents of each variant."),
    click.option("--max-images", type=click.IntRange(min=1), help="Pages the model takes in one request."),
    click.option(
        "--max-visual-tokens", type=click.IntRange(min=1), help="Visual tokens it takes, by --family's formula."
    ),
    click.option("--family", default="qwen2.5-vl", show_default=True, help="Model family for visual tokens."),
    click.option("--too-long", default="skip", show_default=True, help="Beyond them: skip, middle, dpi or chunk."),
    click.option(
        "--tokenizer",
        default="chars/4.2",
        show_default=True,
        help="Counts context length: cl100k, o200k, chars/N, a folder.",
    ),
    click.option(
        "--profile", help="Read answers as another tool does: vqa-scripts (the scripts' own rules), longbench-official."
    ),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("-p", "overrides", multiple=True, metavar="KEY=VALUE", help="Override any field of the task."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the response cache."),
    click.option("--quiet", is_flag=True, help="No progress, no tables."),
    click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout."),
)


def shared_options(command: Any) -> Any:
    """Add the options both jobs have."""
    for option in reversed(SHARED):
        command = option(command)
    return command


@click.command(epilog=MC_EXAMPLE)
@click.option(
    "--data-json", "--data_json", "data", required=True, type=click.Path(path_type=Path), help="LongBench-v2 data.json."
)
@click.option(
    "--images-dir",
    "--images_dir",
    "images",
    required=True,
    type=click.Path(path_type=Path),
    help="Parent of VARIANT/images/.",
)
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder for VARIANT_mc_eval.json.")
@shared_options
def mc(*, data: Path, images: Path, output: Path, quiet: bool, as_json: bool, **flags: Any) -> int:
    """Multiple choice over page images: every subfolder with images/ is a variant, each gets its result file."""
    from ..api.documents import Files, run_choice
    from .run_output import TerminalWatcher

    watcher = TerminalWatcher(quiet=quiet)
    result, files = run_choice(make_settings(flags), Files(data, images, output), watcher)
    for file in files:
        _print(file, as_json)
    return _exit_code(result)


@click.command(epilog=NIAH_EXAMPLE)
@click.option("--data", "-d", required=True, type=click.Path(path_type=Path), help="Needle data.json.")
@click.option("--images", "-i", required=True, type=click.Path(path_type=Path), help="Folder of page images.")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Result file.")
@click.option(
    "--case_sensitive", "--case-sensitive", "case_sensitive", is_flag=True, help="Match answers with their case."
)
@shared_options
def niah(
    *, data: Path, images: Path, output: Path, case_sensitive: bool, quiet: bool, as_json: bool, **flags: Any
) -> int:
    """Needle questions over page images."""
    from ..api.documents import Files, run_needles
    from .run_output import TerminalWatcher

    config = str(flags["config_file"] or flags["model"])
    if case_sensitive:
        flags["overrides"] = (*flags["overrides"], 'scorers=["needle-case"]')
    result = run_needles(make_settings(flags), Files(data, images, output), config, TerminalWatcher(quiet=quiet))
    _print(output, as_json)
    return _exit_code(result)


def make_settings(flags: dict[str, Any]) -> RunSettings:
    """Turn the flags and the model file into settings; flags win."""
    file = read_model_file(flags["config_file"], needed=("model_name", "max_tokens") if not flags["model"] else ())
    model = flags["model"] or file.pop("model", None)
    file.pop("model", None)
    if not model:
        raise UsageError("name the model: --config FILE with model_name, or --model provider/name")
    if flags["presence_penalty"] is not None:
        file["extra_body"] = (file.get("extra_body") or {}) | {"presence_penalty": flags["presence_penalty"]}
    base_url = flags["base_url"] or file.pop("base_url", None) or (DEFAULT_URL if model.startswith("openai/") else None)
    file.pop("base_url", None)
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
    return (*own, *(parse_assignment(each) for each in flags["overrides"]))


def _print(path: Path, as_json: bool) -> None:
    content = msgspec.json.decode(path.read_bytes())
    if as_json:
        kept = (
            {key: value for key, value in content.items() if key != "results"} if isinstance(content, dict) else content
        )
        click.echo(msgspec.json.encode({"file": str(path), "content": kept}).decode())
    elif isinstance(content, dict):
        skipped = f", {len(content['skipped'])} skipped" if content["skipped"] else ""
        low_high = content["ci95"] or ["–", "–"]
        click.echo(
            f"{path}: {content['correct']}/{content['total_questions']} = {content['accuracy']} % [{low_high[0]}, {low_high[1]}]"
            f", {content['errors']} errors{skipped}"
        )
    else:
        click.echo(str(path))


def _exit_code(result: Any) -> int:
    if result.interrupted:
        return 130
    return 1 if result.failed else 0
