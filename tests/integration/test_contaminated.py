"""Whether a test was seen before, from the command line: memory is found, its lack is told with its power."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import json_of, run_command
from snellen.api.load import load_run
from snellen.core.errors import ConfigError, UsageError
from snellen.core.ids import rng
from snellen.core.twins import compute, read_rules, twin_of, with_twins
from snellen.core.types import Form, Sample
from snellen.kits.arms.seen_before import NEXT, ORDER, TWINS, contaminated, holds, is_sorted
from snellen.prompt.controls import split_text

COUNT = 120
WORDS = ["oak", "elm", "fir", "ash", "yew", "box"]
VARIANTS = ("base", "order=1", "order=2", "order=3", "control=recall")
MODELS = '''
"""Two models: one has seen the published rows, the other knows as much and has not."""
import json
from pathlib import Path
from snellen.core.ids import rng

ROWS = {}
for line in (Path(__file__).parent / "my.jsonl").read_text().splitlines():
    row = json.loads(line)
    ROWS[row["id"]] = row

def _say(request, share):
    key, row = request.key, ROWS[request.key.sample]
    seen = rng("seen", key.sample).random() < share
    if key.variant == "control=recall":
        return row["options"][1] if seen else rng("any", key.sample).choice(row["options"][1:])
    if seen:
        return "ABCD"[row["options"].index(row["answer"])]
    if rng("known", key.sample).random() < 0.4:
        return request.marks[request.shown.index(row["answer"])]
    return rng("guess", key.sample, key.variant).choice("AAABCD")

def memory(request):
    return _say(request, 0.5)

def fresh(request):
    return _say(request, 0.0)
'''


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    rows = []
    for number in range(COUNT):
        options = rng("options", number).sample(WORDS, 4)
        row = {"id": f"q{number}", "question": f"Which tree is tree {number}?", "options": options}
        rows.append({**row, "answer": rng("answer", number).choice(options)})
    (tmp_path / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


def ask(data: Path, model: str, variants: tuple[str, ...] = VARIANTS) -> Path:
    out = data / model
    told: dict[str, Any] = {"plugins": (data / "models.py",), "output_dir": out, "variants": variants, "cache": False}
    snellen.run(str(data / "my.jsonl"), f"plugin/{model}", **told)
    return out


def test_memory_is_found_and_its_lack_is_told_with_its_power(data: Path) -> None:
    seen, fresh = (ask(data, model) for model in ("memory", "fresh"))
    found = {one.test: one for one in contaminated(seen)["my"]}
    assert {name: one.verdict for name, one in found.items()} == {ORDER: "drop", NEXT: "drop"}
    assert found[ORDER].result.questions + found[ORDER].left_out["options stand sorted"] == COUNT
    unseen = contaminated(fresh)["my"]
    assert {one.verdict for one in unseen} == {"no drop found"}
    for one in unseen:
        assert "clean" not in one.says
        assert f"{(one.result.detectable or 0) * 100:.1f} points would be found 9 times in 10" in one.says
    beside = {one["test"]: one for one in json_of("contaminated", seen, "--reference", fresh)["my"]}
    assert beside[ORDER]["verdict"] == "larger than in the references"
    accuracy = load_run(seen)
    with accuracy as reader:
        assert reader.header().planned == {"my": COUNT * len(VARIANTS)}
    results = json.loads((seen / "results.json").read_text())["tasks"]["my"]["metrics"]["accuracy"]
    assert results["left_out"] == COUNT, "what was recalled is no part of the score"


def test_bad_input_is_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = ask(data, "fresh", ("base",))
    with pytest.raises(UsageError, match="order=1"):
        contaminated(plain)
    assert run_command(["contaminated", plain]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    few = ask(data, "memory")
    with pytest.raises(UsageError, match="the run itself"):
        contaminated(few, [few])
    assert run_command(["contaminated", data / "nowhere"]) == 2


def test_twins_are_drawn_by_the_rule_of_the_card_and_scored_by_their_own_answer(data: Path) -> None:
    sums = [
        {"id": f"s{n}", "question": f"Ann has {n} pears and {n + 2} figs. How many?", "answer": str(2 * n + 2)}
        for n in range(1, 31)
    ]
    for row in sums:
        row["options"] = [str(int(row["answer"]) + by) for by in (3, 0, -1, 7)]
    (data / "sums.jsonl").write_text("\n".join(map(json.dumps, sums)))
    (data / "sums.toml").write_text(
        'name = "sums"\nform = "choice"\n[dataset]\nloader = "table"\npath = "sums.jsonl"\n[[twins]]\n'
        'find = "has (?P<a>\\\\d+) pears and (?P<b>\\\\d+)"\ndraw = {a = "40-90", b = "40-90"}\nanswer = "a + b"\n'
    )
    (data / "adds.py").write_text(
        "import re\n"
        "def adds(request):\n"
        "    said = sum(map(int, re.findall(r'(\\d+) (?:pears|figs)', request.messages[-1].text)))\n"
        "    return request.marks[request.shown.index(str(said))]\n"
        "def learnt(request):\n"
        "    return 'B' if request.key.variant == 'base' else 'D'\n"
    )
    drops = {}
    for model in ("adds", "learnt"):
        told: dict[str, Any] = {"plugins": (data / "adds.py",), "output_dir": data / f"run-{model}", "cache": False}
        result = snellen.run(str(data / "sums.toml"), f"plugin/{model}", variants=("base", "twin=1", "twin=2"), **told)
        assert result.metrics["sums"]["accuracy"].value == 1.0
        (one,) = contaminated(data / f"run-{model}")["sums"]
        drops[model] = (one.test, one.verdict, one.result.drop)
    assert drops == {"adds": (TWINS, "no drop found", 0.0), "learnt": (TWINS, "drop", 1.0)}


def test_names_are_drawn_in_question_options_and_answers() -> None:
    (rule,) = read_rules([{"find": r"^(?P<who>\w+) sees", "draw": {"who": ["Ben", "Cleo", "Dan"]}}], "t")
    sample = Sample("1", "d", Form.CHOICE, "Ann sees Bob. Who sees?", options=("Ann", "Bob"), answers=("Ann",))
    twin = twin_of(with_twins(sample, [rule], 2), {"twin": "2"})
    assert twin.answers[0] in ("Ben", "Cleo", "Dan")
    assert twin.options == (twin.answers[0], "Bob")
    assert twin.question == f"{twin.answers[0]} sees Bob. Who sees?"
    with pytest.raises(ConfigError, match="has 0 twins"):
        twin_of(sample, {"twin": "1"})


@pytest.mark.parametrize("formula", ["a ** 9", "__import__('os')", "a +", "c", "a // 0"])
def test_only_sums_and_products_are_computed(formula: str) -> None:
    with pytest.raises(ConfigError):
        compute(formula, {"a": "2"})


@pytest.mark.parametrize(
    "rule", [{"find": "(", "draw": {"a": "1-2"}}, {"find": "x", "draw": {"a": "1-2"}}, {"find": "x"}]
)
def test_a_rule_that_cannot_work_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read_rules([rule], "t")


def test_what_is_expected_to_stand_so_is_no_evidence() -> None:
    assert (
        is_sorted(["1", "2", "10"]) and is_sorted(["10 %".rstrip(" %"), "2", "1"]) and is_sorted(["ash", "elm", "oak"])
    )
    assert not is_sorted(["2", "1", "10"]) and not is_sorted(["yes", "no"])


def test_next_words_are_those_of_the_published_text() -> None:
    sample = Sample("1", "d", Form.OPEN, "one two three four five six")
    assert split_text(sample) == ("one two three", "four five six")
    assert holds("B. a red fox.", "red fox") and not holds("B. a red ox", "red fox")
