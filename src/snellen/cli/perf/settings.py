"""Flags of `snellen perf` in, settings of the measurement out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from ...api.look.timelines import parse_objectives, read_trace
from ...api.perf import SYNTHETIC, LoadPlan, PerfSettings, Synthetic
from ...core.errors import UsageError
from ..run import make_settings

DEFAULT_COUNT = 200
CAN_DRAW = importlib.util.find_spec("vl_convert") is not None


def load_settings(**flags: Any) -> PerfSettings:
    """Return the settings of `snellen perf TASK`."""
    levels = _levels(flags, flags.pop("concurrency"), flags.pop("rate"), flags.pop("trace"))
    return _settings(flags, levels)


def _levels(
    flags: dict[str, Any], concurrency: str | None, rate: str | None, trace: Path | None
) -> tuple[LoadPlan, ...]:
    """Return one plan a level: several rates, or several concurrencies; without either one request at a time."""
    extra = {name: flags.pop(name) for name in ("ramp", "ramp_from", "pressure_s", "replay_speed")}
    slots = [int(number) for number in parse_numbers(concurrency, "--concurrency")]
    rates: list[float] = parse_numbers(rate, "--rate")
    if not rates and trace is None:
        return tuple(_level(flags, extra, concurrency=number) for number in slots or [1])
    if len(slots) > 1:
        raise UsageError("--rate or --trace with several --concurrency: give one cap")
    extra |= {"concurrency": next(iter(slots), None)}
    if trace is not None:
        extra |= {"trace": read_trace(trace), "rate": next(iter(rates), None)}
        return (_level(flags, extra),)
    return tuple(_level(flags, extra, rate=number) for number in rates)


def sweep_settings(**flags: Any) -> PerfSettings:
    """Return the settings of `snellen perf sweep`; a point lasts `--duration` seconds (10) unless -n says otherwise."""
    if flags["duration_s"] is None and flags["count"] is None:
        flags["duration_s"] = 10.0
    return _settings(flags, (_level(flags, {}, concurrency=1),))


def _level(flags: dict[str, Any], extra: dict[str, Any], **what: Any) -> LoadPlan:
    burstiness = {"constant": 0.0, "poisson": 1.0}.get(flags["arrivals"], flags["burstiness"])
    if flags["arrivals"] == "gamma" and flags["burstiness"] is None:
        raise UsageError("--arrivals gamma needs --burstiness (below 1: bursts, above 1: more even)")
    if flags["arrivals"] != "gamma" and flags["burstiness"] is not None:
        burstiness = flags["burstiness"]
    same = {name: flags[name] for name in ("count", "duration_s", "warmup", "processes")}
    same |= {name: flags[name] for name in ("timeout_s", "seed") if flags[name] is not None}
    return LoadPlan(burstiness=burstiness, **(same | extra | what))


def _settings(flags: dict[str, Any], levels: tuple[LoadPlan, ...]) -> PerfSettings:
    tasks = tuple(flags["tasks"])
    is_synthetic = tasks == (SYNTHETIC,)
    run = make_settings("perf", {**flags, "tasks": () if is_synthetic else tasks})
    urls = (run.base_url, *run.more_urls) if run.base_url else ()
    return PerfSettings(
        run=msgspec.structs.replace(run, more_urls=()),
        levels=levels,
        base_urls=urls,
        synthetic=_synthetic(flags) if is_synthetic else None,
        synthetic_count=flags["limit"] or min(flags["count"] or DEFAULT_COUNT, 2000),
        objectives=parse_objectives(flags["slo"]) if flags["slo"] else {},
        draw=CAN_DRAW if flags["draw"] is None else flags["draw"],
        **{name: flags[name] for name in ("multi_turn", "think_s", "prefix_cache")},
    )


def _synthetic(flags: dict[str, Any]) -> Synthetic:
    width, cross, height = flags["image_size"].partition("x")
    if not (cross and width.isdigit() and height.isdigit()):
        raise UsageError(f"--image-size {flags['image_size']!r} is not WIDTHxHEIGHT, as in 512x512")
    sizes = {name: flags[name] for name in ("input_tokens", "output_tokens", "images", "turns", "ignore_eos")}
    return Synthetic(width=int(width), height=int(height), **sizes)


def parse_numbers(text: str | None, flag: str) -> list[float]:
    """Parse `1,2,4`, every number above zero; no text gives no numbers."""
    if text is None:
        return []
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{flag} {text!r} is not a list of numbers such as 1,2,4") from None
    if min(numbers) <= 0:
        raise UsageError(f"{flag} {text!r}: every number must be above zero")
    return numbers
