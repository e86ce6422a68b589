"""The catalog's cards, and tests that plug-ins bring, to the tests of one exam."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ..core.config import convert, read_config_file
from ..core.errors import UsageError, not_among
from ..core.registry import Registry
from . import choice_plates, figure_plates, reading_plates, row_plates, scenes
from .coordinates import Locating
from .fixed import TurnedRow
from .plate import Card, EyeTest
from .recipe_round import RecipePage

PLATES: dict[str, Any] = {
    "rows": row_plates.RowTest,
    "words": row_plates.WordTest,
    "page": scenes.Page,
    "mosaics": choice_plates.Mosaics,
    "vernier": choice_plates.Vernier,
    "landolt": choice_plates.Landolt,
    "tumbling-e": choice_plates.TumblingE,
    "junctions": choice_plates.Junctions,
    "discs": choice_plates.Discs,
    "bars": choice_plates.Bars,
    "grating": choice_plates.Grating,
    "counting": scenes.Counting,
    "locating": Locating,
    "field": scenes.FieldTest,
    "held": scenes.Held,
    "turned": TurnedRow,
    "recipe": RecipePage,
    "pairs": figure_plates.Pairs,
    "hidden": figure_plates.Hidden,
    "texture": figure_plates.Texture,
    "paths": figure_plates.Paths,
    "scene": reading_plates.SceneRow,
    "lookup": reading_plates.Lookup,
}
MODES = ("quick", "standard", "fine")
KIND = "eye-test"
"""What a plug-in registers its tests as."""


@cache
def exam_cards() -> dict[str, Card]:
    """Return the cards of the catalog by name."""
    table = read_config_file(str(files("snellen") / "catalog/exam/tests.toml"))
    return {name: convert(card, Card, f"catalog/exam/tests.toml: {name}") for name, card in table.items()}


def eye_test(name: str, registry: Registry | None = None) -> EyeTest:
    """Return one test by name: a plug-in's, or one of the catalog."""
    if registry is not None and name in registry.names(KIND):
        own: EyeTest = registry.get(KIND, name)
        return own
    card = exam_cards().get(name)
    if card is None:
        known = [*exam_cards(), *(registry.names(KIND) if registry else ())]
        raise UsageError(f"--tests: unknown test {not_among(name, known)}")
    test: EyeTest = PLATES[card.plate](card)
    return test


def chosen_tests(names: Sequence[str], mode: str, registry: Registry | None = None) -> dict[str, EyeTest]:
    """Return the tests of an exam in order: those named and what they need, or all of the mode and of plug-ins.

    `resolution` stands for all tests whose name begins so.
    """
    known = exam_cards()
    wanted: list[str] = []
    for name in names:
        group = [other for other in known if other.startswith(f"{name}-")]
        wanted += group if group and name not in known else [name]
    if not wanted:
        wanted = [name for name, card in known.items() if mode in card.modes]
        wanted += registry.names(KIND) if registry else []
    tests: dict[str, EyeTest] = {}
    for name in wanted:
        test = eye_test(name, registry)
        for needed in test.card.needs:
            tests.setdefault(needed, eye_test(needed, registry))
        tests.setdefault(name, test)
    return tests
