"""All 61 cards (and BLINK) on data in their true schema: load from three sources, prompt, answer, score."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reform_fixtures
import snellen
from snellen.api.bundles import check_data
from snellen.core.protocols import LoadContext
from snellen.core.types import Form, Sample
from snellen.data.catalog import Catalog
from snellen.kits.reform.bundles import build_bundle
from snellen.kits.reform.card_loader import load, read_card

CARDS = Path(__file__).resolve().parents[2] / "src/snellen/catalog/datasets/reform"
SLUGS = sorted(path.stem for path in CARDS.glob("*.toml"))
DIMENSIONS = {
    "Coarse-Grained Perception": 9, "Fine-Grained Perception": 10, "Visually Grounded Reasoning": 12, "Spatial Understanding": 3,
    "Multi-Turn Dialogue": 2, "Cross-Modal Inference": 6, "Scene Text Perception": 15, "Visual Description": 4,
}  # fmt: skip
LIKELY = """
from snellen.core.protocols import Capability, ImagePolicy
from snellen.core.types import Prediction

class Likely:
    name = "likely/short"
    capabilities = frozenset({Capability.GENERATE, Capability.LIKELIHOOD, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = True

    async def predict(self, request, images):
        assert not request.shown or "Options:" not in request.messages[-1].text
        return Prediction(request.key, loglikelihoods=tuple(-float(len(choice)) for choice in request.choices))

    async def check(self):
        pass

    async def close(self):
        pass

    def identity(self):
        return {"model": self.name}

def register(registry):
    registry.add("model", "likely", lambda name, options: Likely())
"""


@pytest.fixture(scope="session")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reform")
    for slug in SLUGS:
        reform_fixtures.raw(slug, root / "raw" / slug)
        reform_fixtures.prepared(
            slug, root / "prepared" / slug, tomllib.loads((CARDS / f"{slug}.toml").read_text(encoding="utf-8"))
        )
    return root


def read(slug: str, source: str, root: Path, seed: int = 0) -> list[Sample]:
    task = Catalog().task(f"reform/{slug}", [("dataset.source", source)])
    return list(load(task, LoadContext(seed=seed, root=root / source, workdir=root / "work")))


def test_the_catalog_has_all_rows() -> None:
    catalog = Catalog()
    suite = catalog.expand("reform")
    assert len(suite) == len(set(suite)) == len(SLUGS) == 61
    dimensions = [catalog.task(name).dimension for name in suite]
    assert {name: dimensions.count(name) for name in dimensions} == DIMENSIONS
    parts = [name for part in catalog.names("suites") if part.startswith("reform/") for name in catalog.expand(part)]
    assert sorted(parts) == sorted(suite)
    for name in suite:
        task = catalog.task(name)
        assert task.licence
        assert read_card(task).home.startswith("http")
        prompt = catalog.prompt(task)
        assert len(prompt.instructions) == 5
        assert not prompt.hidden or len(prompt.hidden) == 5


@pytest.mark.parametrize("slug", SLUGS)
def test_three_sources_give_samples(slug: str, fixtures: Path, tmp_path: Path) -> None:
    for source in ("raw", "prepared"):
        samples = read(slug, source, fixtures)
        assert samples, source
        assert read(slug, source, fixtures) == samples, "the same seed gives the same samples"
        check_each(samples)
    manifest = build_bundle(
        f"reform/{slug}", tmp_path / "bundle", raw=fixtures / "raw" / slug, parquet=slug in ("vqa-v2", "coco-goi")
    )
    report = check_data(tmp_path / "bundle")
    assert report.errors == 0, report.findings
    task = Catalog().task(f"reform/{slug}", [("dataset.path", str(tmp_path / "bundle"))])
    bundled = list(load(task, LoadContext()))
    raw = read(slug, "raw", fixtures)
    assert len(bundled) == manifest.samples == len(raw)
    assert [msgspec.structs.replace(each, images=()) for each in bundled] == [
        msgspec.structs.replace(each, images=()) for each in raw
    ]
    assert [image.edits for each in bundled for image in each.images] == [
        image.edits for each in raw for image in each.images
    ]


def check_each(samples: list[Sample]) -> None:
    assert len({sample.id for sample in samples}) == len(samples)
    for sample in samples:
        assert sample.question.strip()
        assert sample.answers
        assert sample.images
        if sample.form is Form.CHOICE:
            assert len(sample.options) >= 2
            assert sample.answers[0] in sample.options
            wrong = [text for text in sample.options if text != sample.answers[0]]
            origins = sample.meta.get("distractors")
            assert origins is None or "*" in origins or set(origins) == set(wrong)


@pytest.mark.parametrize("slug", SLUGS)
def test_a_run_from_end_to_end(slug: str, fixtures: Path, tmp_path: Path) -> None:
    name = f"reform/{slug}"
    result = snellen.run(
        name, "blind/longest", data_root=fixtures / "raw", output_dir=tmp_path / "run", limit=6, cache=False, random_instruct=True,
        duplication=5, shuffle_options=True, prompt={"in_context": True}, overrides=(("aggregates", []),),
    )  # fmt: skip
    assert result.failed == 0
    assert result.results["status"]["complete"]
    count = min(6, len(read(slug, "raw", fixtures))) * 5
    assert result.state.done == count
    for estimate in result.results["tasks"][name]["metrics"].values():
        assert estimate["n"] + estimate["unscored"] + estimate["failed"] <= count
        assert estimate["value"] is None or estimate["value"] == estimate["value"]


CHOICES = [
    slug for slug in SLUGS if tomllib.loads((CARDS / f"{slug}.toml").read_text(encoding="utf-8"))["form"] == "choice"
]


@pytest.mark.parametrize("slug", CHOICES)
def test_a_likelihood_run(slug: str, fixtures: Path, tmp_path: Path) -> None:
    (tmp_path / "likely.py").write_text(LIKELY)
    name = f"reform/{slug}"
    result = snellen.run(
        name, "likely/short", plugins=(tmp_path / "likely.py",), data_root=fixtures / "raw", output_dir=tmp_path / "run", limit=6,
        cache=False, infer_method="likelihood",
    )  # fmt: skip
    assert result.failed == 0
    samples = read(slug, "raw", fixtures)[:6]
    expected = sum(sample.answers[0] == min(sample.options, key=len) for sample in samples)
    ties = any(sorted(map(len, sample.options))[0] == sorted(map(len, sample.options))[1] for sample in samples)
    value = result.results["tasks"][name]["metrics"]["accuracy"]["value"]
    assert ties or value == pytest.approx(expected / len(samples))


def test_blink_with_several_pictures(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    reform_fixtures.raw("blink", tmp_path / "blink")
    result = snellen.run("blink", "blind/first", data_root=tmp_path, output_dir=tmp_path / "run", cache=False)
    assert result.results["tasks"]["blink"]["metrics"]["accuracy"]["value"] == 0.25
    samples = list(load(Catalog().task("blink"), LoadContext(root=tmp_path)))
    assert [len(sample.images) for sample in samples[:2]] == [1, 2]


def test_the_published_table_is_data() -> None:
    card = Catalog().card("published", "reform")
    assert len(card["rows"]) == 16
    assert all(set(card["metrics"]) < set(row) for row in card["rows"])
    best = {
        kind: max(card["rows"], key=lambda row: row[f"{kind}_score"])["name"] for kind in ("generation", "likelihood")
    }
    assert best == {"generation": "BLIP-2", "likelihood": "BLIVA"}, "ranked apart, they are led by different models"


def test_the_page_of_examples_is_up_to_date() -> None:
    """It is read by people: what a re-formulator makes now is what it must show."""
    tools = Path(__file__).resolve().parents[2] / "tools/reform_examples.py"
    spec = importlib.util.spec_from_file_location("reform_examples", tools)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--check"]) == 0, "run python tools/reform_examples.py and read what changed"
    page = module.PAGE.read_text(encoding="utf-8")
    assert all(f"`reform/{slug}`" in page for slug in SLUGS)
    assert ".." not in page.replace("...", "")
