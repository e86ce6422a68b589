"""A model to the batch service of its provider, or why there is none."""

from __future__ import annotations

from ...core.errors import UsageError
from ...core.protocols import Model
from ..served.served_model import ServedModel
from .batch_http import BatchHttp
from .batch_service import BatchService, BatchTerms, batch_terms
from .content_service import ContentService
from .file_service import FileService, MistralService
from .message_service import MessageService

OFFERED = "openai, azure, anthropic, gemini, mistral and dashscope"


def batched_by(model: Model) -> ServedModel:
    """Return the model if its provider takes batches; else refuse."""
    kind = model.dialect.batch if isinstance(model, ServedModel) else ""
    if not isinstance(model, ServedModel) or not kind:
        raise UsageError(f"--batch: {model.name} has no batches; {OFFERED} have, leave --batch out for others")
    return model


def terms_of(model: Model) -> BatchTerms:
    """Return limits and price of the batches of a model."""
    return batch_terms()[batched_by(model).dialect.batch]


def batch_share_of(model: Model) -> float | None:
    """Return the part of the live price that a reply of a batch costs; None where the provider has no batches."""
    has = isinstance(model, ServedModel) and bool(model.dialect.batch)
    return terms_of(model).share if has else None


def open_service(model: Model) -> BatchService:
    """Return the service that takes batches for a model."""
    served = batched_by(model)
    http = BatchHttp(served)
    kind = served.dialect.batch
    if kind == "anthropic":
        return MessageService(http)
    if kind == "gemini":
        return ContentService(http)
    if kind == "mistral":
        return MistralService(http)
    # Azure's older form names the deployment in the address, and its batches stand beside the deployments.
    root = "//openai" if "/deployments/" in served.reach("")[0] else ""
    return FileService(http, served.dialect.batch_endpoint, root)
