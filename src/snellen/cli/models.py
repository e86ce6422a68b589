"""`snellen models`: which providers there are, whether one model answers, and what models cost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from .options import CATALOGS, FILE, MACHINE, print_either

PROVIDERS = {
    "openai": "openai/NAME: OpenAI, vLLM, SGLang, LMDeploy, llama.cpp … (--base-url)",
    "anthropic": "anthropic/NAME: the messages API",
    "gemini": "gemini/NAME: generateContent",
    "reader": "reader, reader/tesseract: the embedded OCR reader; no network, no GPU",
    "blind": "blind/{shortest,longest,first,majority,no-period,random}: text-only baselines",
    "replay": "replay/FILE: answers from a predictions file",
    "hf": "hf/PATH_OR_ID: a local transformers checkpoint",
    "vllm": "vllm/PATH_OR_ID: the offline vLLM engine",
    "plugin": "plugin/NAME: a class or function of your own (--plugin file.py)",
}
EXAMPLE = """
\b
Examples:
  snellen models
  snellen models openai/NAME --base-url http://localhost:8000/v1
  snellen models show openai/gpt-5
  snellen models update model_prices_and_context_window.json --as-of 2026-08-08
"""


class ModelsGroup(click.Group):
    """`models NAME` checks a model; `models show` and `models update` are about cards."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take whatever is no command for a name to check."""
        named = any(not word.startswith("-") for word in args)
        if named and args[0] not in self.commands and "--help" not in args and "-h" not in args:
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ModelsGroup, invoke_without_command=True, epilog=EXAMPLE)
@MACHINE
@click.pass_context
def models(ctx: click.Context, as_json: bool) -> None:
    """List the providers, check one model (`snellen models NAME`), or show and update what models cost."""
    from ..api.listing import list_provider_cards, list_providers

    if ctx.invoked_subcommand is not None:
        return
    known = {provider: PROVIDERS.get(provider, "") for provider in list_providers()} | list_provider_cards()
    print_either(known, "\n".join(f"{provider:14} {text}" for provider, text in known.items()), as_json)


@models.command()
@click.argument("name")
@click.option("--base-url", "--url", help="Where the server answers.")
@MACHINE
def check(name: str, base_url: str | None, as_json: bool) -> None:
    """Check that a model can be reached and what it can do (the same as `snellen models NAME`)."""
    model = _check(name, base_url)
    address = model["identity"].get("base_url")
    at = f" at {address}" if base_url and address != base_url.rstrip("/") else ""
    print_either(model, f"{name} is ready{at}: {', '.join(model['capabilities'])}", as_json)


@models.command()
@click.argument("name")
@CATALOGS
@MACHINE
def show(name: str, catalogs: tuple[Path, ...], as_json: bool) -> None:
    """Show the card of a model: limits, how it counts pictures, prices and of which day they are."""
    from ..api.price_cards import describe_card, look_up_model

    where, card = look_up_model(name, catalogs)
    print_either({"where": where, **msgspec.to_builtins(card)}, "\n".join(describe_card(where, card)), as_json)


@models.command()
@click.argument("file", type=FILE)
@click.option("--as-of", metavar="DAY", help="Of which day the prices are.  [default: when the file was written]")
@MACHINE
def update(file: Path, as_of: str | None, as_json: bool) -> None:
    """Take prices and limits from a table as LiteLLM publishes it, into your own folder."""
    from ..api.price_cards import update_prices

    summary, lines = update_prices(file, as_of)
    print_either(summary, "\n".join(lines), as_json)


def _check(name: str, base_url: str | None) -> dict[str, Any]:
    from ..api.load import load_model

    async def check() -> dict[str, Any]:
        model = load_model(name, base_url=base_url)
        try:
            await model.check()
        finally:
            await model.close()
        identity = msgspec.to_builtins(model.identity())
        return {"model": name, "capabilities": sorted(model.capabilities), "identity": identity}

    return asyncio.run(check())
