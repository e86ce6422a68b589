"""Someone's class, loader or function to two calls over a batch, generate and predict; nothing of theirs changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import UsageError
from ..core.types import Request

BatchCall = Callable[[Sequence[Request], Sequence[list[Any]], Sequence[str]], list[Any]]
"""Takes requests, their images and their prompts; returns one answer each."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a plug-in can do; None is what it cannot."""

    generate: BatchCall | None
    predict: BatchCall | None
    reduces: bool = False
    """Whether it takes `likelihood_reduction`: what it then returns is reduced already."""


def wrap(found: Any, arguments: Mapping[str, Any], infer_method: str = "generation") -> Interface:
    """Return the calls of a class (made with `arguments`), of what a loader returns, or of a plain function.

    A loader's table and a class that names it are also told the `inference_method`.
    """
    told = {"inference_method": infer_method}
    if inspect.isclass(found):
        named = told if "inference_method" in inspect.signature(found).parameters else {}
        return _from_object(_make(found, {**named, **arguments}))
    if _is_loader(found):
        made = found({**told, **arguments})
        return _from_object(made[0] if isinstance(made, tuple) else made)
    return _from_function(found, arguments)


def _make(kind: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return kind(**arguments)
    except TypeError as error:
        fix = "give its arguments as --model-arg NAME=VALUE"
        raise UsageError(f"plug-in class {kind.__name__}: {error}; {fix}") from None


def _is_loader(function: Any) -> bool:
    parameters = list(inspect.signature(function).parameters)
    return str(getattr(function, "__name__", "")).startswith("get_") or parameters == ["model_config"]


def _from_object(made: Any) -> Interface:
    """Read the interface of an object; if it has none but can be called, take it as a function."""
    generate = _batch(made, "raw_batch_generate") or _one_by_one(made, "raw_generate")
    predict = _batch(made, "raw_batch_predict") or _one_by_one(made, "raw_predict")
    if generate or predict:
        scores = getattr(made, "raw_batch_predict", None) or getattr(made, "raw_predict", None)
        return Interface(generate, predict, reduces=_takes_reduction(scores))
    if callable(made):
        return _from_function(made, {})
    missing = "neither raw_batch_generate nor raw_batch_predict, and cannot be called"
    raise UsageError(f"plug-in {type(made).__name__} has {missing}")


def _batch(made: Any, name: str) -> BatchCall | None:
    method = getattr(made, name, None)
    return _call_in_groups(method) if callable(method) else None


def _call_in_groups(method: Callable[..., Any]) -> BatchCall:
    """Return a call that hands a method requests that share their sampling parameters, which it takes once for all."""

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers: dict[int, Any] = {}
        for group in _alike(requests):
            first = requests[group[0]]
            extra = _extra(method, first)
            if first.choices:
                extra["candidates"] = [list(requests[place].choices) for place in group]
            given = method([_one(images[place]) for place in group], [prompts[place] for place in group], **extra)
            answers |= zip(group, [given] if isinstance(given, int | str) else given, strict=True)
        return [answers[place] for place in range(len(requests))]

    return _call


def _one_by_one(made: Any, name: str) -> BatchCall | None:
    method = getattr(made, name, None)
    if not callable(method):
        return None

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers = []
        for request, pictures, prompt in zip(requests, images, prompts, strict=True):
            candidates = {"candidates": list(request.choices)} if request.choices else {}
            answers.append(method(_one(pictures), prompt, **candidates, **_extra(method, request)))
        return answers

    return _call


def _from_function(function: Any, arguments: Mapping[str, Any]) -> Interface:
    names = set(inspect.signature(function).parameters)

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers = []
        for request, pictures, prompt in zip(requests, images, prompts, strict=True):
            offered = {"image": _one(pictures), "images": pictures, "prompt": prompt, "request": request}
            offered |= {"candidates": list(request.choices), "likelihood_reduction": request.likelihood.reduction}
            offered |= _sampling(request) | dict(arguments)
            answers.append(function(**{name: value for name, value in offered.items() if name in names}))
        return answers

    return Interface(_call, _call if "candidates" in names else None, reduces=_takes_reduction(function))


def _takes_reduction(method: Any) -> bool:
    return callable(method) and "likelihood_reduction" in inspect.signature(method).parameters


def _extra(method: Any, request: Request) -> dict[str, Any]:
    """Return the optional arguments that are set and that the method names."""
    names = inspect.signature(method).parameters
    offered: dict[str, Any] = {} if request.choices else _sampling(request)
    if request.choices:
        offered["likelihood_reduction"] = request.likelihood.reduction
    return {name: value for name, value in offered.items() if name in names}


def _sampling(request: Request) -> dict[str, Any]:
    told = {"temperature": request.params.temperature, "max_new_tokens": request.params.max_tokens}
    return {name: value for name, value in told.items() if value is not None}


def _alike(requests: Sequence[Request]) -> list[list[int]]:
    """Group the places of requests that share their parameters."""
    groups: dict[Any, list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault((request.params.temperature, request.params.max_tokens), []).append(place)
    return list(groups.values())


def _one(images: list[Any]) -> Any:
    """Return the image as such interfaces expect it: one picture, None without, a list of several."""
    if len(images) > 1:
        return images
    return images[0] if images else None
