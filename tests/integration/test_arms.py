"""Questions in arms, from the command to the files: which picture is shown, what is counted, killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest

import snellen
from command_line import COMMAND, json_of, run_command
from snellen.core.errors import UsageError
from snellen.core.ids import rng
from snellen.core.types import Request
from snellen.kits.arms.figures import KEEPS, NEEDS, Arms
from snellen.kits.arms.part import SUBSET
from snellen.kits.bank.bank_file import read_bank
from snellen.kits.bank.picture import picture_worth
from snellen.report.query import Query, group_values, select
from snellen.scoring.aggregates.counted import counted
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader
from video_files import write_video
from video_server import reading_server
from waiting import stored_trials, wait_until

COLOURS = {"red": (220, 20, 20), "blue": (20, 20, 220), "green": (20, 160, 20), "yellow": (240, 220, 20)}
NAMES = list(COLOURS)
ARMS = ("picture", "none", "blank", "other", "shuffled-options")
COUNT = 24
READER = '''
"""A reader that sees colours, knows some answers by heart, and says so where it sees nothing."""
import json
from pathlib import Path
from snellen.core.ids import rng

GOLD = {}
for line in (Path(__file__).parent / "my.jsonl").read_text().splitlines():
    row = json.loads(line)
    GOLD[row["id"]] = row["answer"]
COLOURS = {"red": (220, 20, 20), "blue": (20, 20, 220), "green": (20, 160, 20), "yellow": (240, 220, 20)}

def half(images, request):
    key, heart = request.key, int(request.key.sample[1:]) % 2 == 0
    shown = [name for image in images for name, colour in COLOURS.items() if image.getpixel((20, 20)) == colour]
    if heart:
        said = GOLD[key.sample]
    elif shown:
        said = shown[0]
    else:
        return "I'm sorry, I cannot see any image."
    return f"{request.marks[request.shown.index(said)]}. Confidence: 80%"
'''


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    rows = []
    for number in range(COUNT):
        colour = NAMES[number % 4]
        picture = PIL.Image.new("RGB", (48, 40), COLOURS[colour])
        picture.putpixel((number, 0), (0, 0, 0))
        picture.save(tmp_path / f"p{number}.png")
        options = rng("options", number).sample(NAMES, 4)
        row = {"id": f"q{number}", "question": f"What colour is <image 1>, number {number}?", "image": f"p{number}.png"}
        rows.append({**row, "options": options, "answer": colour, "side": "left" if number % 3 else "right"})
    (tmp_path / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "reader.py").write_text(READER)
    return tmp_path


def ask(folder: Path, name: str = "run", **settings: Any) -> Any:
    told = {"arms": ARMS, "plugins": (folder / "reader.py",), "output_dir": folder / name, **settings}
    return snellen.run(str(folder / "my.jsonl"), "plugin/half", **told)


def requests_of(folder: Path) -> dict[tuple[str, str], Request]:
    with RunReader(folder) as reader:
        rows = reader.rows("SELECT sample, variant, request FROM predictions")
        return {(sample, variant): msgspec.json.decode(body, type=Request) for sample, variant, body in rows}


def test_each_arm_shows_what_it_says(data: Path) -> None:
    ask(data)
    asked = requests_of(data / "run")
    pictures = {key: [image for turn in one.messages for image in turn.images] for key, one in asked.items()}
    for number in range(COUNT):
        name = f"q{number}"
        own = pictures[name, "base"]
        assert [len(pictures[name, variant]) for variant in ("base", "control=none", "control=blank")] == [1, 0, 1]
        assert pictures[name, "control=blank"][0].edits == ("blank",)
        (other,) = pictures[name, "control=other"]
        assert Path(other.ref).name != Path(own[0].ref).name
        assert int(Path(other.ref).stem[1:]) % 4 != number % 4, "never a picture of the same answer"
        assert "<image" not in asked[name, "control=none"].messages[-1].text
        assert sorted(asked[name, "order=1"].shown) == sorted(asked[name, "base"].shown)
    assert any(asked[f"q{n}", "order=1"].shown != asked[f"q{n}", "base"].shown for n in range(COUNT))


def test_the_score_is_of_the_picture_and_the_arms_stand_beside_it(data: Path) -> None:
    result = ask(data)
    task = result.results["tasks"]["my"]
    accuracy = task["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["left_out"]) == (1.0, COUNT, 4 * COUNT)
    none, other = (task["arms"]["arms"][name] for name in ("none", "other"))
    assert (none["with"], none["without"], none["unseen"]) == (1.0, 0.5, COUNT // 2)
    assert none["kept_above_chance"]["value"] == pytest.approx(0.5), "who declines does not guess"
    assert none["gain"]["ci95"][0] < 0.5 < none["gain"]["ci95"][1]
    assert other["without"] == 0.5
    assert task["metrics"]["needs_picture"]["value"] == pytest.approx(0.5)
    assert task["arms"]["questions"] == {"needs": 12, "keeps": 12, "harmed": 0, "neither": 0}
    assert set(task["arms"]["groups"]["side"]) == {"left", "right"}
    assert task["sureness"][0]["source"] == "stated" and task["sureness"][0]["confidence"] == pytest.approx(0.8)
    assert task["groups"]["variant"]["control=none"]["accuracy"]["value"] == 0.5
    page = (data / "run" / "report.html").read_text()
    assert "What the picture is worth" in page and "12 questions answered without the picture" in page


def test_questions_answered_without_it_are_listed_and_left_out_next_time(data: Path) -> None:
    ask(data)
    lines = [json.loads(line) for line in (data / "run" / "arms.jsonl").read_text().splitlines()]
    blind = {line["sample"] for line in lines if line["class"] == KEEPS}
    assert blind == {f"q{number}" for number in range(0, COUNT, 2)}
    assert next(line for line in lines if line["sample"] == "q1")["replies"]["none"].startswith("I'm sorry")
    again = snellen.run(str(data / "my.jsonl"), "blind/first", subset=f"{data}/run/{SUBSET}", output_dir=data / "rest")
    assert again.state.done == COUNT // 2
    card = (data / "run" / "subsets" / f"{SUBSET}.toml").read_bytes()
    assert run_command(["score", data / "run"]) == 0
    assert (data / "run" / "subsets" / f"{SUBSET}.toml").read_bytes() == card


def test_verdicts_need_several_replies(data: Path) -> None:
    alone = ask(data, "alone").results["tasks"]["my"]["arms"]
    assert alone["verdicts"] is None
    often = ask(data, "often", num_infers=5, temperature=0.7).results["tasks"]["my"]["arms"]
    assert often["verdicts"] == {"needs the picture": 12, "answered without it": 12}


def test_likelihood_is_asked_in_arms_too(data: Path) -> None:
    result = snellen.run(
        str(data / "my.jsonl"), "blind/longest", arms=("picture", "none"), infer_method="likelihood",
        output_dir=data / "likely",
    )  # fmt: skip
    arms = result.results["tasks"]["my"]["arms"]
    assert arms["arms"]["none"]["gain"]["value"] == 0.0


def test_the_viewer_filters_by_what_needs_the_picture(data: Path) -> None:
    ask(data)
    with RunReader(data / "run") as reader:
        columns = read_columns(reader, reader.header().tasks[0])
    assert group_values(columns)["picture"] == ["harmed", "keeps", "needs", "neither"]
    rows = select(columns, Query(key="picture", group=NEEDS, also=(("variant", "control=none"),)))
    assert {columns.key(int(row)).sample for row in rows} == {f"q{number}" for number in range(1, COUNT, 2)}
    assert len(counted(columns)) == COUNT
    assert Arms(columns, {}).first == "none"


def test_without_arms_nothing_of_a_run_changes(data: Path) -> None:
    plain = snellen.RunSettings(tasks=("my.jsonl",), model="blind/first")
    assert "arms" not in plain.named()
    result = snellen.run(str(data / "my.jsonl"), "blind/first", output_dir=data / "plain")
    assert "arms" not in result.results["tasks"]["my"]
    assert not (data / "plain" / "arms.jsonl").exists()
    with RunReader(data / "plain") as reader:
        (task,) = reader.header().config["tasks"].values()
    assert not {"arms", "twins"} & set(task)


def test_a_killed_run_goes_on_to_the_same_results(data: Path, mock_server: Callable[..., Any]) -> None:
    server = mock_server("--ttft-ms", "20")
    told = ["run", data / "my.jsonl", "--model", "openai/mock", "--base-url", server.base_url, "--no-cache"]
    told += ["--arms", ",".join(ARMS), "--max-workers", "2", "--quiet"]
    whole = json_of(*told, "-o", data / "whole")
    process = subprocess.Popen([*COMMAND, *map(str, told), "-o", str(data / "killed")])
    wait_until(lambda: stored_trials(data / "killed") >= 20, "twenty trials are stored")
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert 20 <= stored_trials(data / "killed") < 5 * COUNT
    again = json_of(*told, "-o", data / "killed")
    assert again["tasks"]["my"]["arms"] == whole["tasks"]["my"]["arms"]
    assert (data / "killed" / "arms.jsonl").read_bytes() == (data / "whole" / "arms.jsonl").read_bytes()
    assert requests_of(data / "killed") == requests_of(data / "whole")


@pytest.mark.parametrize(
    ("arms", "change", "named"),
    [
        (("picture", "nothing"), None, "nothing"),
        (("none",), None, "picture"),
        (("picture", "shuffled-options"), None, "none"),
        (("picture", "none", "none"), None, "twice"),
        (("picture", "one-frame"), None, "video"),
        (("picture", "without-page"), None, "evidence_pages"),
        (("picture", "none"), {"image": None, "question": "What colour is it?"}, "every row lacks a picture"),
        (("picture", "other"), {"image": "p0.png"}, "every row has no other picture"),
        (("picture", "other"), {"answer": "red"}, "every row has no other picture"),
        (("picture", "none", "shuffled-options"), {"options": None}, "options"),
    ],
)
def test_bad_input_is_one_line(data: Path, arms: tuple[str, ...], change: Any, named: str) -> None:
    if change is not None:
        rows = [json.loads(line) | change for line in (data / "my.jsonl").read_text().splitlines()]
        (data / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UsageError) as refused:
        ask(data, arms=arms)
    assert named in str(refused.value) and "\n" not in str(refused.value)
    assert not (data / "run" / "run.db").exists()


def test_arms_on_some_text_rows_are_refused_by_their_names(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "my.jsonl").read_text().splitlines()]
    for row in (rows[5], rows[7]):
        row |= {"image": None, "question": "What colour is the sea?"}
    (data / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UsageError, match=r"2 of 24 rows \('q5', 'q7'\)"):
        ask(data)


CROWD = '''
"""Six models: each knows a share of the answers by heart and reads another share from the picture."""
from snellen.core.ids import rng
from reader import COLOURS, GOLD

def answer(name, images, request, heart, eye):
    key = request.key
    shown = [colour for colour, value in COLOURS.items() for image in images if image.getpixel((20, 20)) == value]
    said = ""
    if shown and rng(name, "eye", key.sample).random() < eye:
        said = shown[0]
    elif rng(name, "heart", key.sample).random() < heart:
        said = GOLD[key.sample]
    wrong = [text for text in request.shown if text != GOLD[key.sample]]
    return request.marks[request.shown.index(said or wrong[0])]

def make(name, heart, eye):
    return lambda images, request: answer(name, images, request, heart, eye)

m0, m1, m2, m3, m4, m5 = (make(f"m{n}", 0.1 * n, 0.95 - 0.1 * n) for n in range(6))
'''


def test_a_bank_tells_over_models_which_questions_need_the_picture(data: Path) -> None:
    (data / "crowd.py").write_text(CROWD)
    models = [f"plugin/m{number}" for number in range(6)]
    told: dict[str, Any] = {"arms": ("picture", "none"), "plugins": (data / "crowd.py",)}
    for number, model in enumerate(models):
        snellen.run(str(data / "my.jsonl"), model, output_dir=data / "runs" / str(number), **told)
    for arm in ("picture", "none"):
        assert run_command(["bank", "build", data / "runs", "--arm", arm, "-o", data / f"{arm}.bank"]) == 0
    found = json_of("bank", "picture", data / "picture.bank", data / "none.bank", "-o", data / "needs.toml")
    means = []
    for number in range(6):
        task = json.loads((data / "runs" / str(number) / "results.json").read_text())["tasks"]["my"]
        means.append((task["arms"]["arms"]["none"]["with"], task["arms"]["arms"]["none"]["without"]))
    assert found["with_it"] == pytest.approx(sum(mean[0] for mean in means) / 6)
    assert found["without"] == pytest.approx(sum(mean[1] for mean in means) / 6)
    assert found["kept"]["value"] == pytest.approx(found["without"] / found["with_it"])
    assert sum(found["classes"].values()) == pytest.approx(1.0) and found["models"] == 6
    subset = tomllib.loads((data / "needs.toml").read_text())["ids"]
    assert len(subset) == COUNT - len(found["blind"]) and not set(subset) & set(found["blind"])
    # A run with this bank and in arms: the score of the whole is the picture's, and the arms are over what was asked.
    result = snellen.run(
        str(data / "my.jsonl"), "plugin/half", arms=("picture", "none"), plugins=(data / "reader.py",),
        bank=data / "picture.bank", budget=12, output_dir=data / "banked", max_workers=1,
    ).results["tasks"]["my"]  # fmt: skip
    assert result["whole"]["asked"] == 12 and result["whole"]["mean"] == 1.0
    assert 12 <= result["arms"]["arms"]["none"]["questions"] < COUNT, (
        "those in flight when it was enough are stored too"
    )
    assert result["arms"]["arms"]["none"]["with"] == 1.0
    for banks, named in ((("none", "picture"), "picture first"), (("picture", "picture"), "picture first")):
        with pytest.raises(UsageError, match=named):
            picture_worth(*(read_bank(data / f"{name}.bank") for name in banks))
    with pytest.raises(UsageError, match="arm none"):
        ask(data, "wrong", bank=data / "none.bank", budget=12)


def test_until_ci_watches_the_picture_and_asks_the_arms_of_the_same_questions(data: Path) -> None:
    settings = {"until_ci": 45.0, "max_workers": 1}  # with more, one late reply lets the others run ahead to the end
    result = ask(data, **settings)
    status = json.loads((data / "run" / "results.json").read_text())["status"]["until_ci"]
    assert status["stopped"] and status["interval"][1] == 1.0
    asked = result.results["tasks"]["my"]["arms"]["arms"]["none"]
    assert status["questions"] <= asked["questions"] < COUNT and asked["with"] == 1.0
    plain = ask(data, "plain", **settings, arms=())
    assert plain.results["status"]["until_ci"]["questions"] == status["questions"]


def test_frames_of_a_video_are_taken_away_shuffled_and_withheld(tmp_path: Path) -> None:
    rows = []
    for number, length in enumerate((60, 40, 32)):
        write_video(tmp_path / f"{number}.mp4", length)
        right = ", ".join(str((2 * place + 1) * length // 16) for place in range(8))
        options = [right, *(f"{number}, {wrong}" for wrong in ("1", "2", "3"))]
        rows.append({"id": f"v{number}", "video": f"{number}.mp4", "question": "Which?", "options": options})
        rows[-1] |= {"answer": right}
    (tmp_path / "films.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names = ("picture", "one-frame", "frames-shuffled", "no-video")
    with reading_server() as server:
        result = snellen.run(
            str(tmp_path / "films.jsonl"), "openai/m", base_url=server.base_url, arms=names, cache=False,
            output_dir=tmp_path / "run",
        )  # fmt: skip
    task = result.results["tasks"]["films"]
    assert task["metrics"]["accuracy"]["value"] == 1.0
    assert {name: arm["without"] for name, arm in task["arms"]["arms"].items()} == dict.fromkeys(names[1:], 0.0)
    with RunReader(tmp_path / "run") as reader:
        replies = dict(reader.rows("SELECT variant, body FROM predictions WHERE sample = 'v0'"))
    said = {variant: json.loads(body)["text"] for variant, body in replies.items()}
    assert said["control=no-video"] == "I see " and said["frames=1"] == "I see 30"
    assert sorted(said["tempo=shuffle:5"].removeprefix("I see ").split(", "), key=int) == rows[0]["answer"].split(", ")


def test_a_document_is_asked_without_the_page_that_holds_the_answer(data: Path) -> None:
    rows = []
    for number in range(8):
        pages = [f"p{number}.png", f"p{(number + 1) % COUNT}.png", f"p{(number + 2) % COUNT}.png"]
        row = {"id": f"q{2 * number + 1}", "question": "What colour is the first page?", "images": pages}
        rows.append({**row, "options": NAMES, "answer": NAMES[number % 4], "evidence_pages": "[1]"})
    (data / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = ask(data, arms=("picture", "without-page")).results["tasks"]["my"]
    asked = requests_of(data / "run")
    for number in range(8):
        shown = [
            Path(image.ref).stem for image in asked[f"q{2 * number + 1}", "control=without-page"].messages[-1].images
        ]
        assert shown == [f"p{(number + 1) % COUNT}", f"p{(number + 2) % COUNT}"]
    assert (task["arms"]["arms"]["without-page"]["with"], task["arms"]["arms"]["without-page"]["without"]) == (1.0, 0.0)
    rows[3]["evidence_pages"] = "the first"
    (data / "my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UsageError, match=r"1 of 8 rows \('q7'\)"):
        ask(data, "broken", arms=("picture", "without-page"))
