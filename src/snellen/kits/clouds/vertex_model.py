"""`vertex/NAME`: models of Google and of Anthropic on Vertex, with a token that is renewed when it expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import UsageError
from ...core.types import Request
from ...model.options import ModelOptions, address_variable, first_set
from ...model.served.access_tokens import google_token
from ...model.served.anthropic import Anthropic
from ...model.served.dialect import Dialect, Picture
from ...model.served.gemini import Gemini
from ...model.served.served_model import ServedModel

VERSION = "vertex-2023-10-16"
PROJECTS = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
LOCATIONS = ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION")
TOKEN = "VERTEX_ACCESS_TOKEN"  # noqa: S105 - the name of a variable


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `vertex/NAME`; names of Claude speak Anthropic's dialect, all others Gemini's."""
    options.allow_arguments("vertex", ("project", "location"))
    dialect: Dialect = VertexClaude() if name.startswith("claude") else VertexGemini()
    if options.base_url is None and not first_set(address_variable("vertex")):
        options = replace(options, base_url=_address(options))
    given = options.api_key or options.key_command or options.renew_key or first_set(TOKEN)
    if not given:
        options = replace(options, renew_key=google_token)
    dialect.lists_models = False  # not at this address
    return ServedModel(dialect, name, options)


def _address(options: ModelOptions) -> str:
    project = str(options.arguments.get("project") or first_set(*PROJECTS))
    location = str(options.arguments.get("location") or first_set(*LOCATIONS) or "global")
    if not project:
        raise UsageError("vertex: which project? Set GOOGLE_CLOUD_PROJECT, or give --model-arg project=NAME")
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    return f"https://{host}/v1/projects/{project}/locations/{location}"


class VertexGemini(Gemini):
    """Gemini's dialect at Vertex's address."""

    provider = "vertex"
    key_variable = TOKEN
    key_header = "Authorization"
    batch = ""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of the model's method."""
        return super().url(f"{base_url}/publishers/google", model, stream=stream)


class VertexClaude(Anthropic):
    """Anthropic's dialect at Vertex's address: the model in the path, the version in the body."""

    provider = "vertex"
    key_variable = TOKEN
    key_header = "Authorization"
    own_headers = ()
    batch = ""

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of the model's method."""
        return f"{base_url}/publishers/anthropic/models/{model}:{'streamRawPredict' if stream else 'rawPredict'}"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the messages body without its model."""
        body = super().payload(model, request, pictures)
        body.pop("model")
        return {"anthropic_version": VERSION, **body}
