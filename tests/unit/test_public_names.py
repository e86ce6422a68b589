"""The root package: what `__all__` promises can be imported, stays small, and stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import snellen


def names_for_readers_of_types() -> dict[str, str]:
    """Return name -> module as the package's own `if TYPE_CHECKING` block imports them."""
    tree = ast.parse(Path(snellen.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names), "only `x as x` is exported"
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_what_is_promised_is_there_and_the_same_for_readers_of_types() -> None:
    assert 0 < len(snellen.__all__) <= 25
    assert names_for_readers_of_types() == {name: module for module, names in snellen._PUBLIC.items() for name in names}
    for name in snellen.__all__:
        assert callable(getattr(snellen, name)), name
        assert name in dir(snellen)


def test_every_public_name_says_what_it_is() -> None:
    assert [name for name in snellen.__all__ if not (getattr(snellen, name).__doc__ or "").strip()] == []


def test_unknown_name_is_an_attribute_error() -> None:
    try:
        _ = snellen.no_such_name
    except AttributeError as error:
        assert "no_such_name" in str(error)
    else:
        raise AssertionError("must raise")


def test_importing_snellen_and_help_import_nothing_heavy() -> None:
    code = "import sys, snellen, snellen.cli.main; print(sorted({'numpy','PIL','aiohttp','rich','torch','msgspec'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(eval(out)) <= {"msgspec"}
