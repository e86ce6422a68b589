"""The header of a run: named by what changes its replies, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.api.header import VERSIONED, installed_versions, make_header
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings


class Served:
    name = "openai/x"

    def __init__(self, **identity: Any) -> None:
        self._identity = identity

    def identity(self) -> dict[str, Any]:
        return {"model": self.name, **self._identity}


def test_the_id_is_the_content_in_any_order_and_without_the_address() -> None:
    first = make_header(Served(base_url="http://a"), {"seed": 0, "limit": None}, versions={})
    second = make_header(Served(base_url="http://b"), {"limit": None, "seed": 0}, versions={"numpy": "2"}, command="x")
    assert first.id == second.id
    assert first.config == {"model": {"model": "openai/x"}, "seed": 0, "limit": None}


def test_what_changes_replies_changes_the_id() -> None:
    plain = make_header(Served(), {"seed": 0}, versions={}).id
    assert make_header(Served(), {"seed": 1}, versions={}).id != plain
    assert make_header(Served(revision="2"), {"seed": 0}, versions={}).id != plain


def test_the_config_is_as_it_will_be_read_back() -> None:
    header = make_header(Served(), {"variants": ("base", "order=1")}, versions={})
    assert header.config["variants"] == ["base", "order=1"]


def test_versions_name_every_package_that_counts() -> None:
    versions = installed_versions()
    assert set(versions) == {"python", "platform", *VERSIONED} and all(versions.values())


def test_a_file_that_is_called_like_a_style_of_the_catalog_is_no_part_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(json.dumps({"question": "Q?", "options": ["x", "y"], "answer": "A"}))
    settings = RunSettings(tasks=("rows.jsonl",), model="blind/first")
    before = make_plan(settings).header.id
    Path("chat").write_text("notes of a talk")
    assert make_plan(settings).header.id == before
