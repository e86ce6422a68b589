"""Checkpoints of a known skill: each is measured once, the curve is their truth, and a fall is told."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from starlette.requests import Request

from command_line import COMMAND as PROGRAM
from command_line import run_command
from snellen.kits.arrays.checkpoints import Watched, is_whole
from snellen.kits.arrays.curve import Measured, _alarms, _as_gain, curve_figure, curves_below, curves_page, step_of
from snellen.report.viewer.run_library import RunLibrary
from waiting import CEILING_S, wait_until

PLUGIN = """
import json
import random
import sys
from pathlib import Path
from snellen.core.protocols import Capability, ImagePolicy
from snellen.core.types import Prediction


class Known:
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = False

    def __init__(self, name):
        self.name, self.skill = f"known/{name}", json.loads((Path(name) / "config.json").read_text())["skill"]

    async def predict(self, request, images):
        number = int(request.key.sample[1:])
        return Prediction(request.key, text="ABC"[(number + (number >= self.skill)) % 3])

    async def check(self): ...

    def identity(self):
        return {"model": self.name}

    async def close(self): ...


def register(registry):
    registry.add("model", "known", lambda name, options: Known(name))
"""


@pytest.fixture
def place(own_folder: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": f"Number {n}?", "options": [f"{n}-a", f"{n}-b", f"{n}-c"], "answer": "ABC"[n % 3]}
        for n in range(100)
    ]
    (own_folder / "quick.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (own_folder / "known.py").write_text(PLUGIN)
    (own_folder / "training").mkdir()
    return own_folder


def add(step: int, skill: int) -> Path:
    folder = Path("training") / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"skill": skill}))
    (folder / "model.safetensors").write_bytes(b"x")
    return folder


COMMAND = ["follow", "training", "--tasks", "quick.jsonl", "-o", "curve", "--provider", "known", "--once"]
COMMAND += ["--every", "0.01", "--plugin", "known.py"]


def test_the_curve_is_the_truth_and_each_checkpoint_is_asked_once(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step, skill in ((100, 40), (200, 60), (1000, 70)):
        add(step, skill)
    assert run_command([*COMMAND]) == 0
    ((folder, (curve,)),) = curves_below(Path("curve"))
    assert folder == Path("curve") and [point.step for point in curve.points] == [100, 200, 1000]
    assert [round(point.value, 2) for point in curve.points] == [0.4, 0.6, 0.7]
    assert all(point.low < point.difference < point.high for point in curve.points[1:]) and not curve.alarms
    assert "checkpoint-1000" in capsys.readouterr().out and "<svg" in curve_figure(curve)
    Path("torn").mkdir()
    (Path("torn") / "curve.json").write_text("[{")
    library = RunLibrary([Path()])
    page = str(curves_page(library, Request({"type": "http"})))
    assert "checkpoint-1000" in page and "torn/curve.json" in page and "tabindex" in page, "it scrolls on a phone"
    shutil.rmtree("torn")
    before = (Path("curve") / "checkpoint-100" / "run.db").stat().st_mtime_ns
    add(2000, 20)
    assert run_command([*COMMAND, "--gate", "curve/checkpoint-100"]) == 4
    said = capsys.readouterr().out
    assert "ALARM checkpoint-2000: 50.0 points below checkpoint-1000" in said
    assert "ALARM checkpoint-2000: 20.0 points below curve/checkpoint-100" in said
    assert (Path("curve") / "checkpoint-100" / "run.db").stat().st_mtime_ns == before
    add(3000, 10)
    assert run_command([*COMMAND, "--on-alarm", "touch rang"]) == 0 and Path("rang").exists()


def test_a_checkpoint_that_is_still_written_waits(place: Path) -> None:
    folder = add(1, 5)
    watched = Watched(Path("training"), Path("curve"))
    assert watched.ready() == [] and watched.ready() == [folder]
    (folder / "more.bin").write_bytes(b"abc")
    assert watched.ready() == [] and watched.ready() == [folder]
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-2.safetensors"}}')
    assert not is_whole(folder)
    (folder / "model-2.safetensors").write_bytes(b"x")
    assert is_whole(folder) and not is_whole(folder, "done") and step_of("checkpoint-20")[0] == 20


def test_with_a_bank_the_value_is_that_of_all_questions_and_nothing_is_asked_twice(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["item," + ",".join(f"m{n}" for n in range(8))]
    lines += [f"q{number}," + ",".join(str(int(number < 25 + 8 * n)) for n in range(8)) for number in range(100)]
    Path("table.csv").write_text("\n".join(lines))
    assert run_command(["bank", "build", "table.csv", "-o", "task.bank"]) == 0
    for step, skill in ((100, 40), (200, 80)):
        add(step, skill)
    assert run_command([*COMMAND, "--bank", "task.bank", "--budget", "50"]) == 0
    ((_, (curve,)),) = curves_below(Path("curve"))
    assert curve.whole == 100 and 50 <= curve.questions < 100
    for point, truth in zip(curve.points, (0.4, 0.8), strict=True):
        assert point.interval is not None and point.interval[0] <= truth <= point.interval[1]
        assert abs(point.value - truth) < 0.05, "the bank knows the order of the questions"
    assert "of all 100 by the bank" in capsys.readouterr().out
    assert run_command([*COMMAND, "--bank", "task.bank", "--budget", "50"]) == 0
    assert not capsys.readouterr().out, "nothing is measured again"


def test_a_checkpoint_whose_replies_are_not_read_or_fail_is_told_and_not_asked_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = PLUGIN.replace(
        'text="ABC"[(number + (number >= self.skill)) % 3]',
        'text="ABC"[number % 3] if number < self.skill else "no idea"',
    )
    Path("known.py").write_text(silent)
    rows = Path("quick.jsonl").read_text().splitlines()
    Path("quick.jsonl").write_text("\n".join([*rows[:-1], json.dumps(json.loads(rows[-1]) | {"image": "broken.png"})]))
    Path("broken.png").write_bytes(b"no picture")
    add(100, 40)
    assert run_command([*COMMAND]) == 0
    ((_, (curve,)),) = curves_below(Path("curve"))
    assert curve.points[0].failed == 1 and curve.points[0].unread == 0.59
    assert "59 % of the replies not read, 1 failed" in capsys.readouterr().out
    assert run_command([*COMMAND]) == 0 and not capsys.readouterr().out


def test_late_checkpoints_share_the_level_of_an_alarm_and_an_error_falls_by_rising() -> None:
    draw = np.random.default_rng(4)
    false = {"in order": 0, "newest first": 0}
    for _ in range(200):
        gains = (draw.random((60, 6)) < 0.6).astype(float)
        for name, order in (("in order", range(6)), ("newest first", range(5, -1, -1))):
            rang = False
            for count in range(2, 7):
                measured = sorted(list(order)[:count])
                runs = [Measured(f"c{at}", {}, f"{list(order).index(at):03}", {}) for at in measured]
                rang = rang or bool(_alarms(runs, gains[:, measured], np.arange(60), 0.0))
            false[name] += rang
    assert false["in order"] <= 16 and false["newest first"] <= 16, f"{false} of 200: more than 5 %"
    assert _as_gain(np.array([0.2]), "cer")[0] == 0.8 and _as_gain(np.array([0.2]), "accuracy")[0] == 0.2


def test_what_no_checkpoint_could_be_asked_with_is_refused_before_the_first_is_loaded(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(7, 1)
    (place / "other.jsonl").write_text('{"id": "1", "question": "a?", "options": ["a", "b"], "answer": "A"}')
    assert run_command(["run", "other.jsonl", "--model", "blind/first", "-o", "base", "--quiet"]) == 0
    capsys.readouterr()
    wrong = [["--gate", "base"], ["--gate", "training"], ["--tasks", "no.jsonl"], ["--provider", "nobody"]]
    for more in (*wrong, ["--model", "known/x"], ["--shard", "0/2"]):
        assert run_command([*COMMAND, *more]) in (2, 3), more
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, more
    assert not Path("curve").exists()


def test_wrong_words_are_refused_in_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["follow", "nowhere", "--tasks", "quick.jsonl", "-o", "curve"]) == 2
    assert run_command(["follow", "training", "-o", "curve", "--once"]) == 2
    assert run_command(["follow", "training", "--tasks", "quick.jsonl", "-o", "curve", "--once", "--modl"]) == 2
    capsys.readouterr()
    broken = add(7, 1)
    (broken / "config.json").write_text('{"skill": 1}')
    Path("curve").mkdir()
    (Path("curve") / broken.name).write_text("in the way")
    assert run_command([*COMMAND]) == 1
    assert f"{broken.name} could not be measured" in capsys.readouterr().out


def test_a_checkpoint_that_no_library_can_load_is_named_and_rests_longer_each_time(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, good = add(8, 1), add(7, 40)
    (broken / "config.json").write_text('{"no": "skill"}')
    assert run_command([*COMMAND]) == 1
    said = capsys.readouterr().out
    assert "checkpoint-8 could not be measured: KeyError: 'skill'" in said and "checkpoint-7" in said
    watched, looks = Watched(Path("training"), Path("curve")), list[int]()
    assert watched.is_measured(good)
    for look in range(1, 40):
        if broken in watched.ready():
            looks.append(look)
            watched.wait_after_failure(broken)
    assert looks == [2, 4, 8, 16, 32]
    (broken / "config.json").write_text('{"skill": 50}')
    assert watched.ready() == [] and watched.ready() == [broken], "what changed is tried at once"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_its_pause_and_what_was_measured_stays(
    number: signal.Signals, code: int, place: Path
) -> None:
    add(1, 40)
    told = [one for one in COMMAND if one not in ("--once", "0.01")]
    told[told.index("--every")] = "--every=0.5"
    process = subprocess.Popen([*PROGRAM, *told], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: Path("curve/curve.json").exists(), "the first checkpoint measured")
    process.send_signal(number)
    said = process.communicate(timeout=CEILING_S)[0]
    assert process.returncode == code and "Traceback" not in said, said
    assert run_command([*COMMAND]) == 0 and Watched(Path("training"), Path("curve")).is_measured(Path("checkpoint-1"))


def test_a_signal_while_a_checkpoint_is_asked_drains_and_asks_to_be_started_again(place: Path) -> None:
    Path("known.py").write_text(
        PLUGIN.replace(
            "number = int", "os.kill(os.getpid(), signal.SIGTERM) if request.key.sample == 'q5' else None; number = int"
        ).replace("import json", "import json, os, signal", 1)
    )
    add(1, 40)
    done = subprocess.run([*PROGRAM, *COMMAND, "--max-workers", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 75, done.stderr
    left = json.loads(Path("curve/checkpoint-1/results.json").read_bytes())["status"]["not_yet_asked"]["quick"]
    assert 0 < left <= 95, "what was in flight is kept"


@pytest.mark.nightly
def test_the_curve_of_checkpoints_that_our_training_left_rises(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trl")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    import train_world as world

    draw = random.Random(1)
    taught, asked = world.scenes(1200, 1, "taught", place), world.scenes(60, 2, "asked", place)
    rows = [world.row(path, *scene.step(n % 3, draw)) for n, (scene, path) in enumerate(taught)]
    rows += [
        world.row(path, world.CAPTION, scene.caption(draw)) for scene, path in taught
    ]  # seeing is learnt by telling
    world.write_rows(place / "taught.jsonl", rows)
    steps = [(scene.questions()[number % 3], path) for number, (scene, path) in enumerate(asked)]
    keys = ("question", "options", "answer", "image")
    world.write_rows(place / "asked.jsonl", [dict(zip(keys, (*one, path), strict=True)) for one, path in steps])
    card = 'name = "colours"\nform = "choice"\n[dataset]\nloader = "table"\npath = "asked.jsonl"\n[prompt]\ntemplate = "{question} {options}"\n'
    (place / "asked.toml").write_text(
        card + 'option_format = "{mark} {text}"\noption_separator = " "\n[params]\nmax_tokens = 8\n'
    )
    world.write_model(place / "untaught", 1)
    told = [
        "--weights",
        "full",
        "--batch-size",
        "32",
        "--learning-rate",
        "2e-3",
        "--save-steps",
        "30",
        "--steps",
        "150",
    ]
    told += [
        "--allow-answers",
        "--set",
        "training.keep_checkpoints=9",
        "--set",
        "training.warmup_steps=20",
        "--set",
        "trl.adam_beta2=0.98",
    ]
    taught_by = ["train", "rationale", "--model", "hf/untaught", "--stage", "sft", "--data", "taught.jsonl"]
    assert run_command([*taught_by, "-o", "trained", *told]) == 0
    asked_by = ["--tasks", "asked.toml", "-o", "curve", "--once", "--no-cache", "--every", "0.01"]
    assert run_command(["follow", "trained/checkpoints", *asked_by, "--model-arg", "batch_size=60"]) == 0
    ((_, (curve,)),) = curves_below(Path("curve"))
    first, *_, last = curve.points
    assert len(curve.points) == 5 and first.value < 0.6 and last.value > 0.9 and last.low > 0.2, curve
