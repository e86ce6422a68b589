"""What `make release` builds holds the package and nothing else; what is not fit for release is refused."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from documentation import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tool.build(tmp_path_factory.mktemp("dist"))


def test_wheel_and_sdist_hold_what_they_should(tool: ModuleType, built: tuple[Path, Path]) -> None:
    wheel, sdist = built
    tool.check_wheel(wheel)
    tool.check_sdist(sdist)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for needed in ("catalog/datasets/eyechart.toml", "store/schema.sql", "py.typed"):
        assert f"snellen/{needed}" in names
    assert any("/static/" in name for name in names) and not any("tests/" in name for name in names)
    sums = tool.write_checksums(built).read_text().split()
    assert sums[1::2] == [wheel.name, sdist.name] and all(len(digest) == 64 for digest in sums[::2])


@pytest.mark.parametrize(
    ("drop", "add", "problem"),
    [
        ("catalog/datasets/eyechart.toml", "", "lacks"),
        ("", "tests/test_x.py", "also holds"),
        ("LICENSE", "", "licence"),
    ],
)
def test_a_wheel_that_lacks_or_adds_a_file_is_refused(
    tool: ModuleType, built: tuple[Path, Path], tmp_path: Path, drop: str, add: str, problem: str
) -> None:
    spoilt = tmp_path / built[0].name
    with zipfile.ZipFile(built[0]) as archive, zipfile.ZipFile(spoilt, "w") as target:
        for name in archive.namelist():
            if not drop or not name.endswith(drop):
                target.writestr(name, archive.read(name))
        if add:
            target.writestr(add, "")
    with pytest.raises(SystemExit, match=problem):
        tool.check_wheel(spoilt)
