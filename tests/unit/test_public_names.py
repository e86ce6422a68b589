"""The root package: what `__all__` promises can be imported, stays small, and stays cheap."""

from __future__ import annotations

import subprocess
import sys

import snellen


def test_every_public_name_is_there_and_no_other() -> None:
    assert len(snellen.__all__) <= 25
    assert set(snellen.__all__) == set(snellen._PUBLIC)
    for name in snellen.__all__:
        assert callable(getattr(snellen, name)), name


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
