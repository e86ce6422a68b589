"""`provider/name` and the settings around it to a model: from the registry, or from a provider's card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import msgspec

from ..core.config import convert, dotted_names
from ..core.errors import UsageError, nearest_name
from ..core.protocols import Model
from ..core.registry import Registry
from ..core.secret import names_a_key
from ..data.catalog import Catalog
from ..model.options import ModelOptions, Served
from ..model.served.model_card import FoundCard, find_model_card
from .settings import RunSettings


def create_model(settings: RunSettings, registry: Registry) -> Model:
    """Return the model named `provider/name`; one pool where it has several servers."""
    if not settings.more_urls:
        return fit_to_card(_create_one(settings, registry), settings)
    from ..model.served.pool import PooledModel
    from ..model.served.served_model import ServedModel

    urls = (settings.base_url, *settings.more_urls)
    each = [msgspec.structs.replace(settings, base_url=url, more_urls=()) for url in urls]
    models = [fit_to_card(_create_one(one, registry), one) for one in each]
    served = [model for model in models if isinstance(model, ServedModel)]
    if len(served) != len(models):
        raise UsageError(f"several --base-url: {settings.model} is not a served model")
    return PooledModel(served)


def check_provider(settings: RunSettings, registry: Registry) -> None:
    """Refuse a model whose provider nobody knows."""
    provider, _, name = settings.model.partition("/")
    cards = Catalog(settings.catalogs).names("providers")
    if provider not in cards and registry.find("model", provider) is None:
        known = [*registry.names("model"), *cards]
        hint = _meant(settings, provider, name, known)
        tip = f" (did you mean {hint!r}?)" if hint else ""
        wrong = f"model {settings.model!r}: unknown provider {provider!r}{tip}"
        raise UsageError(f"{wrong}; write provider/name, providers: {', '.join(known)}")
    if settings.base_url and not settings.base_url.startswith(("http://", "https://")):
        raise UsageError("--base-url begins with neither http:// nor https://: write e.g. http://localhost:8000/v1")


def _create_one(settings: RunSettings, registry: Registry) -> Model:
    check_provider(settings, registry)
    refuse_keys(settings)
    provider, _, name = settings.model.partition("/")
    catalog = Catalog(settings.catalogs)
    told = {field.name: getattr(settings, field.name, None) for field in fields(ModelOptions)}
    told |= {
        "arguments": settings.model_arguments,
        "infer_method": "likelihood" if "likelihood" in (settings.infer_method or "") else None,
    }
    options = ModelOptions(**{name: value for name, value in told.items() if value is not None})
    if provider in catalog.names("providers"):
        from ..model.served.provider_card import ProviderCard, create_by_card

        card = convert(catalog.card("providers", provider), ProviderCard, f"provider {provider!r}")
        return create_by_card(provider, card, name, options)
    model: Model = registry.get("model", provider)(name, options)
    return model


def _meant(settings: RunSettings, provider: str, name: str, known: Sequence[str]) -> str:
    """Return the model that was probably meant: by a provider spelt right, or as its server calls it."""
    near = nearest_name(provider, known)
    whole = f"openai/{settings.model}" if settings.base_url else ""
    if not name or (whole and provider.startswith(near)):  # `mistralai/…` is a maker, no slip of `mistral/…`
        return whole or near
    return f"{near}/{name}" if near else whole


def find_card(model: Model, settings: RunSettings) -> FoundCard:
    """Return what is known of a model where it is served."""
    address = model.identity().get("base_url")
    return find_model_card(settings.model, address if isinstance(address, str) else None, settings.catalogs)


def fit_to_card(model: Model, settings: RunSettings) -> Model:
    """Let the model's card make its picture policy narrower: what it would refuse is made smaller, and recorded."""
    if not isinstance(model, Served):
        return _untold(model, settings)
    if settings.image_policy is not None:
        return model
    card = find_card(model, settings).card
    policy = model.image_policy
    for name in ("max_side", "max_bytes"):
        limit, known = getattr(card, name, None), getattr(policy, name)
        if limit is not None and (known is None or limit < known):
            policy = msgspec.structs.replace(policy, **{name: limit})
    model.image_policy = policy
    return model


def _untold(model: Model, settings: RunSettings) -> Model:
    """Return a model of this machine; refuse what only a server can be told."""
    if settings.constrain or settings.prompt_cache:
        flag = "--constrain" if settings.constrain else "--prompt-cache"
        raise UsageError(f"{flag}: {model.name} is not a served model; leave it out")
    policy = settings.image_policy
    if policy is not None and model.image_policy == policy and (policy.max_side or policy.min_side):
        flag = "--image-max-side" if policy.max_side else "--image-min-side"
        raise UsageError(
            f"{flag}: {model.name} opens pictures itself and would see them whole; shrink the files instead"
        )
    return model


def refuse_keys(settings: RunSettings) -> None:
    """Refuse a key where settings are stored: it would stand in run.db, results.json and report.html."""
    places = {"--model-arg": settings.model_arguments, "extra_body": settings.extra_body or {}}
    named = [(place, name) for place, table in places.items() for name in dotted_names(table)]
    named += [("-p", name) for name, _ in settings.overrides]
    for place, name in named:
        if names_a_key(name):
            raise UsageError(f"{place} {name}: a key here would be stored; give it by --api-key-env NAME")
