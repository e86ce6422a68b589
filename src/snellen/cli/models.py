"""`snellen models`: which providers there are, and whether one model answers."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import msgspec

from .options import MACHINE, print_either

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
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", required=False)
@click.option("--base-url", "--url", help="Where the server answers.")
@MACHINE
def models(name: str | None, base_url: str | None, as_json: bool) -> None:
    """List the providers, or check that one model can be reached and what it can do."""
    from ..api.listing import list_provider_cards, list_providers

    if name:
        model = _check(name, base_url)
        address = model["identity"].get("base_url")
        at = f" at {address}" if base_url and address != base_url.rstrip("/") else ""
        print_either(model, f"{name} is ready{at}: {', '.join(model['capabilities'])}", as_json)
        return
    known = {provider: PROVIDERS.get(provider, "") for provider in list_providers()} | list_provider_cards()
    print_either(known, "\n".join(f"{provider:14} {text}" for provider, text in known.items()), as_json)


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
