"""Every public name and every seam shows how it is used, and what it shows is what happens."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

import reform_fixtures
import snellen
from snellen.core import protocols
from snellen.sight.plate import EyeTest

SEAMS = ("Loader", "Model", "Inferencer", "Scorer", "Aggregate")
ROWS = [
    {"id": "1", "question": "What is it?", "options": ["a cat", "a black cat"], "answer": "B"},
    {"id": "2", "question": "Is it asleep?", "options": ["yes", "not really"], "answer": "A"},
]
OBJECTS = {name: getattr(snellen, name) for name in snellen.__all__} | {
    name: getattr(protocols, name) for name in SEAMS
}
OBJECTS["EyeTest"] = EyeTest  # the one seam that is not core's: it speaks of pictures and readings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the file that the examples speak of, and a dataset in ./data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    (tmp_path / "my.jsonl").write_text("\n".join(map(json.dumps, ROWS)))


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_the_example_of(name: str, place: None) -> None:
    if name == "load_reform_dataset":
        reform_fixtures.raw("vqa-v2", Path("data/vqa-v2"))
    text = OBJECTS[name].__doc__ or ""
    test = doctest.DocTestParser().get_doctest(text, {"snellen": snellen}, name, None, 0)
    assert "Example:" in text and test.examples, f"{name} shows no example"
    report: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


def test_the_seams_are_the_kinds_of_the_registry() -> None:
    from snellen.core.registry import KINDS

    ours = (
        "eye-test",
        "executor",
        "asking",
        "stop",
        "predictions",
        "formulation",
        "score-file",
        "items",
        "edit",
        "export",
        "tracker",
        "check",
        "command",
        "page",
        "rewrite",
        "part",
    )
    assert sorted(KINDS) == sorted([*(name.lower() for name in SEAMS), *ours])
