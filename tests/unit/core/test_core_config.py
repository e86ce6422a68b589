"""The config border, the registry, ids, variants and secrets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snellen.core.registry as module
from snellen.core.builtins import default_registry
from snellen.core.config import convert, parse_assignment, read_config_file, set_by_path
from snellen.core.errors import ConfigError, UsageError
from snellen.core.ids import content_hash, derive_seed, rng
from snellen.core.registry import Registry
from snellen.core.secret import Secret
from snellen.core.tasks import Task
from snellen.core.types import Prediction, Score, TrialKey
from snellen.core.variants import format_variant, parse_variant


def test_unknown_key_names_the_near_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'repeat' \(did you mean 'repeats'\?\)"):
        convert({"name": "x", "dataset": {}, "repeat": 3}, Task, "task 'x'")


def test_wrong_type_names_the_field() -> None:
    with pytest.raises(ConfigError, match=r"repeats"):
        convert({"name": "x", "dataset": {}, "repeats": "many"}, Task, "task 'x'")


def test_broken_files_are_one_line(tmp_path: Path) -> None:
    for name, text in (("a.toml", "x = "), ("a.json", "{"), ("b.json", "[1]")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ConfigError) as error:
            read_config_file(path)
        assert name in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="cannot read"):
        read_config_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "expected"), [("a=1", 1), ("a=true", True), ("a=x y", "x y"), ("a=[1, 2]", [1, 2]), ("a=", "")]
)
def test_assignments_read_toml_or_text(text: str, expected: object) -> None:
    assert parse_assignment(text) == ("a", expected)


def test_dotted_paths_make_tables_and_refuse_values() -> None:
    table: dict[str, object] = {"a": 1}
    set_by_path(table, "b.c.d", 2)
    assert table == {"a": 1, "b": {"c": {"d": 2}}}
    with pytest.raises(ConfigError):
        set_by_path(table, "a.b", 1)


def test_a_plug_in_is_advised_only_where_a_command_takes_one() -> None:
    registry = default_registry()
    for kind in ("scorer", "tracker"):
        with pytest.raises(UsageError, match="--plugin"):
            registry.get(kind, "nope")
    for kind in ("formulation", "export", "predictions"):
        with pytest.raises(UsageError) as refused:
            registry.get(kind, "nope")
        assert "nope" in str(refused.value) and "--plugin" not in str(refused.value)


def test_registry_clash_unknown_and_lazy(tmp_path: Path) -> None:
    registry = Registry()
    registry.add("scorer", "exact", "snellen.core.ids:content_hash")
    assert registry.get("scorer", "exact") is content_hash
    with pytest.raises(ConfigError, match="registered twice"):
        registry.add("scorer", "exact", "other:thing")
    with pytest.raises(UsageError, match="did you mean 'exact'"):
        registry.get("scorer", "exat")
    plugin = tmp_path / "mine.py"
    plugin.write_text("def register(registry):\n    registry.add('scorer', 'mine', len)\n")
    registry.load_plugin(plugin)
    assert registry.get("scorer", "mine") is len
    (tmp_path / "bad.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="no function register"):
        registry.load_plugin(tmp_path / "bad.py")


def test_seeds_depend_on_every_part_and_on_nothing_else() -> None:
    assert rng(1, "a", "base", 0, "order").random() == rng(1, "a", "base", 0, "order").random()
    seeds = {derive_seed(*parts) for parts in ((1, "a"), (1, "b"), (2, "a"), ("1a",), (1, "a", ""))}
    assert len(seeds) == 5


@given(
    st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), st.from_regex(r"[a-z0-9:]+", fullmatch=True), max_size=4)
)
def test_variants_round_trip(axes: dict[str, str]) -> None:
    assert parse_variant(format_variant(axes)) == axes


def test_bad_variants_are_refused() -> None:
    for bad in ("wording", "a=1&a=2", "=1", "a="):
        with pytest.raises(ConfigError):
            parse_variant(bad)


def test_secret_is_masked_and_scrubbed_in_every_spelling() -> None:
    assert Secret(" sk-canary\r\n").reveal() == "sk-canary"
    secret = Secret("sk-canary/42+x")
    assert "canary" not in f"{secret} {secret!r}"
    text = "key sk-canary/42+x url sk-canary%2F42%2Bx base c2stY2FuYXJ5LzQyK3g="
    assert secret.scrub(text) == "key **** url **** base ****"


def test_a_prediction_is_exactly_one_thing() -> None:
    key = TrialKey("t", "s")
    with pytest.raises(ValueError, match="exactly one"):
        Prediction(key)
    with pytest.raises(ValueError, match="exactly one"):
        Prediction(key, text="a", loglikelihoods=(0.0,))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_is_finite_or_has_a_reason(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Score(TrialKey("t", "s"), "accuracy", value)
    with pytest.raises(ValueError, match="reason"):
        Score(TrialKey("t", "s"), "accuracy", None)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder on the path, as packages are installed into; what a test puts there is found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module._installed.cache_clear()
    yield tmp_path
    module._installed.cache_clear()


def install(folder: Path, name: str, points: str) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)


def test_installed_plug_ins_are_found_and_a_clash_is_refused(installed: Path) -> None:
    install(
        installed, "theirs", "[snellen.loader]\nmine = json:loads\n[snellen.model]\nmine = json:dumps\n[z]\nx = y:z\n"
    )
    registry = Registry()
    assert (registry.get("loader", "mine"), registry.names("model"), registry.names("scorer")) == (
        json.loads,
        ["mine"],
        [],
    )
    other = Registry()
    other.add("model", "mine", "json:load")
    with pytest.raises(ConfigError, match="model 'mine' is registered twice"):
        other.names("model")


def test_a_strangers_kit_brings_a_command_by_one_entry_point(installed: Path) -> None:
    (installed / "their_kit.py").write_text(
        "from snellen.core.registry import Command\n"
        "def register(registry):\n"
        "    registry.add('command', 'theirs', Command('their_kit_commands:theirs', 'What they do.', 'Theirs'))\n"
    )
    install(installed, "their-kit", "[snellen.kit]\ntheirs = their_kit:register\n")
    registry = default_registry()
    assert registry.find("command", "view") is not None
    assert "their_kit" not in sys.modules
    assert registry.entries("command")["theirs"].help == "What they do."
    (installed / "their_kit.py").write_text("def register(registry):\n    raise ValueError('no')\n")
    sys.modules.pop("their_kit")
    with pytest.raises(UsageError, match=r"'theirs'.*their_kit:register"):
        default_registry().names("command")


def test_kits_are_asked_where_the_core_has_not_the_name_or_all_names_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "shipped_kits", lambda: pytest.fail("kits were asked"))
    registry = default_registry()
    assert registry.get("scorer", "choice")
    for ask in (lambda: registry.get("scorer", "peer"), lambda: default_registry().names("scorer")):
        with pytest.raises(pytest.fail.Exception, match="kits were asked"):
            ask()


def test_a_plug_in_that_takes_the_name_of_a_kit_is_refused(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("def register(registry):\n    registry.add('scorer', 'peer', len)\n")
    with pytest.raises(ConfigError, match="scorer 'peer' is registered twice"):
        default_registry([plugin])


def test_where_no_package_names_a_group_of_ours_none_is_read(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: pytest.fail("every package was read"))
    install(installed, "other", "[console_scripts]\nx = y:z\n")
    assert Registry().names("model") == []
