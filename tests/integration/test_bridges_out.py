"""A run in the forms of other tools: opened by these tools themselves where they are installed, and read back whole."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command_line import json_of, run_command
from made_runs import make_run, make_task
from snellen.api.outputs import export
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.data.files.bundle import write_bundle
from snellen.kits.bridges.foreign_runs import import_predictions
from snellen.store.reader import RunReader

FORMS = ("eee", "inspect", "otel", "junit", "croissant")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with variants, repeats, replies that cannot be read, failures, and pictures."""
    task = make_task(repeats=2, variants=("base", "wording=2"))
    return make_run(tmp_path_factory.mktemp("bridges") / "run", count=40, task=task)


def facts_of(folder: Path) -> dict[Any, Any]:
    """Return key -> outcome, reply, value, answer, kind of failure, tokens, right answers."""
    found = {}
    with RunReader(folder) as reader:
        task = reader.header().tasks[0].name
        for (sample, request, prediction, _), scores in reader.with_scores(task):
            key, failure = prediction.key, prediction.failure
            score = next((one for one in scores if one.metric == "accuracy"), None)
            found[(key.sample, key.variant, key.repeat)] = (
                prediction.text,
                failure.kind if failure else None,
                score.value if score else None,
                score.answer if score else None,
                prediction.usage.output_tokens if prediction.usage else None,
                sample.answers,
                request.shown,
                request.marks,
                prediction.finish,
            )
    return found


def digest(folder: Path) -> dict[str, str]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_run_gives_the_same_bytes(run: Path, form: str, tmp_path: Path) -> None:
    export(run, form, tmp_path / "a")
    export(run, form, tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != {}


@pytest.mark.parametrize("form", ["eee", "inspect"])
def test_what_is_written_out_is_read_back_with_every_trial(run: Path, form: str, tmp_path: Path) -> None:
    files, _ = export(run, form, tmp_path / "out")
    done = import_predictions(files[0], output=tmp_path / "again")
    before, after = facts_of(run), facts_of(done.folder)
    assert len(before) == 160
    assert any(value[0] and value[2] is None for value in before.values()), "some replies cannot be read"
    assert any(value[1] for value in before.values()), "some calls failed"
    assert after == before
    told = json.loads((run / "results.json").read_text())["tasks"]["shapes"]["metrics"]["accuracy"]
    again = done.results["tasks"]["shapes"]["metrics"]["accuracy"]
    assert (again["value"], again["n"], again["failed"]) == (told["value"], told["n"], told["failed"])


def test_inspect_opens_the_log_with_scores_pictures_epochs_and_errors(run: Path, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    (file,), _ = export(run, "inspect", tmp_path)
    whole = log.read_eval_log(str(file))
    assert whole.status == "success"
    assert len(whole.samples) == 160
    failed = [sample for sample in whole.samples if sample.error]
    unread = [s for s in whole.samples if s.scores and math.isnan(s.scores["accuracy"].value)]
    assert len(failed) == sum(value[1] is not None for value in facts_of(run).values())
    assert len(unread) == sum(value[0] is not None and value[2] is None for value in facts_of(run).values())
    score = whole.results.scores[0]
    assert (score.scored_samples, score.unscored_samples) == (160 - len(failed) - len(unread), len(unread))
    assert {sample.epoch for sample in whole.samples} == {1, 2}
    resolved = log.read_eval_log_sample(str(file), whole.samples[0].id, 1, resolve_attachments=True)
    pictures = [part for part in resolved.input[-1].content if part.type == "image"]
    assert pictures
    assert pictures[0].image.startswith("data:image/png;base64,")
    header = log.read_eval_log(str(file), header_only=True)
    assert header.results.total_samples == 160
    assert header.samples is None


@pytest.mark.filterwarnings("ignore")  # of pandas, about how inspect_ai uses it
def test_inspects_data_frames_hold_every_sample(run: Path, tmp_path: Path) -> None:
    analysis = pytest.importorskip("inspect_ai.analysis", reason="inspect_ai is not installed")
    (file,), _ = export(run, "inspect", tmp_path)
    frame = analysis.samples_df(str(file))
    assert len(frame) == 160
    assert frame["score_accuracy"].notna().sum() == sum(value[2] is not None for value in facts_of(run).values())


def test_the_api_of_inspects_viewer_lists_the_log(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    testing = pytest.importorskip("starlette.testclient", reason="starlette is not installed")
    server = pytest.importorskip("inspect_ai._view.fastapi_server", reason="this inspect_ai has another viewer")
    (file,), _ = export(run, "inspect", tmp_path)
    app = server.view_server_app(default_dir=str(tmp_path))
    with testing.TestClient(app) as client:
        listed = client.get("/logs", params={"log_dir": str(tmp_path)})
        assert listed.status_code == 200
        assert file.name in listed.text
        name = listed.json()["files"][0]["name"]
        header = client.get("/log-headers", params={"file": name})
        assert header.status_code == 200
        assert header.json()[0]["eval"]["task"] == "shapes"


def test_every_eval_ever_accepts_the_records_by_its_schemas(run: Path, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schemas = find_schemas()
    (aggregate, samples), _ = export(run, "eee", tmp_path)
    of_aggregate, of_rows = (json.loads((schemas / name).read_text()) for name in SCHEMAS)
    jsonschema.Draft7Validator(of_aggregate).validate(json.loads(aggregate.read_text()))
    validator = jsonschema.Draft7Validator(of_rows)
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    for row in rows:
        validator.validate(row)
    told = json.loads(aggregate.read_text())
    strict = next(
        one for one in told["evaluation_results"] if one["evaluation_result_id"] == rows[0]["evaluation_result_id"]
    )
    mean = sum(row["evaluation"]["score"] for row in rows) / len(rows)
    assert mean == pytest.approx(strict["score_details"]["score"])
    assert told["detailed_evaluation_results"]["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert all(isinstance(value, str) for row in rows for value in row["metadata"].values())
    assert (tmp_path / told["detailed_evaluation_results"]["file_path"]) == samples


SCHEMAS = ("eval.schema.json", "instance_level_eval.schema.json")


def find_schemas() -> Path:
    """Return the folder of the package's own schemas; the package needs Python 3.12, its files need nothing."""
    import importlib.util
    import os

    told = os.environ.get("EVERY_EVAL_EVER_SCHEMAS")
    if told:
        return Path(told)
    spec = importlib.util.find_spec("every_eval_ever")
    if spec is None or spec.origin is None:
        pytest.skip("every-eval-ever is not installed (it needs Python 3.12)")
    return Path(spec.origin).parent / "schemas"


def test_every_eval_evers_own_validator_finds_nothing(run: Path, tmp_path: Path) -> None:
    import importlib.util

    if importlib.util.find_spec("every_eval_ever") is None:
        pytest.skip("every-eval-ever is not installed (it needs Python 3.12)")
    files, _ = export(run, "eee", tmp_path)
    named = [str(file.relative_to(tmp_path)) for file in files]
    command = [sys.executable, "-m", "every_eval_ever", "validate", "--format", "json", *named]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_separator_in_a_reply_breaks_no_line(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": "?", "answer": "x", "response": "a\u2028b\x85c\x0cd"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = import_predictions(tmp_path / "rows.jsonl", output=tmp_path / "run")
    (_, samples), _ = export(done.folder, "eee", tmp_path / "out")
    assert len(samples.read_text().splitlines()) == 1


def test_the_hub_reads_the_result_and_local_data_is_refused(run: Path, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("this huggingface_hub knows no evaluation results")
    import yaml

    details = {"dataset": "org/bench", "task_id": "default", "scale": "percent"}
    (file,), _ = export(run, "hub", tmp_path, details)
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(file.read_text()))
    told = json.loads((run / "results.json").read_text())["tasks"]["shapes"]["metrics"]["accuracy"]
    assert entry.value == pytest.approx(100 * told["value"], abs=1e-5)
    assert f"failed {told['failed']}" in entry.notes
    assert "\n" not in entry.notes
    with pytest.raises(UsageError, match="task_id"):
        export(run, "hub", tmp_path, {"dataset": "org/bench", "scale": "percent"})
    with pytest.raises(UsageError, match="OWNER/NAME"):
        export(run, "hub", tmp_path, details | {"dataset": "/data/my.jsonl"})


class Received:
    """What a collector was sent, by path."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []


@contextmanager
def collector() -> Iterator[tuple[str, Received]]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append((self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("protocol", ["json", "protobuf"])
def test_a_collector_gets_a_span_a_trial_and_an_event_a_reply(run: Path, protocol: str, tmp_path: Path) -> None:
    if protocol == "protobuf":
        pytest.importorskip("opentelemetry.proto", reason="opentelemetry-proto is not installed")
    with collector() as (address, received):
        export(run, "otel", tmp_path, {"endpoint": address, "protocol": protocol})
    spans, events = decode(received, protocol)
    failed = sum(value[1] is not None for value in facts_of(run).values())
    chats = [span for span in spans if span["name"].startswith("chat ")]
    assert (len(chats), len(events)) == (160, 160 - failed)
    assert len({span["spanId"] for span in spans}) == len(spans) == 161
    assert {event["spanId"] for event in events} <= {span["spanId"] for span in chats}
    assert sum(span["status"].get("code") in (2, "STATUS_CODE_ERROR") for span in chats) == failed
    labels = [
        fact["value"]["stringValue"]
        for event in events
        for fact in event["attributes"]
        if fact["key"].endswith("score.label")
    ]
    values = [fact for event in events for fact in event["attributes"] if fact["key"].endswith("score.value")]
    assert labels.count("unscored") == len(events) - len(values) > 0
    assert b"Which colour" not in b"".join(body for _, _, body in received.requests)


def test_a_run_is_told_live_each_trial_once(tmp_path: Path, mock_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = Path(__file__).parents[1] / "golden" / "data" / "bridges" / "bench.jsonl"
    with collector() as (address, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        flags = ["--base-url", mock_server().base_url, "--log", "otel", "--quiet", "--no-cache", "-o", tmp_path / "run"]
        assert run_command(["run", golden, "--model", "openai/mock", *flags]) == 0
    spans, events = decode(received, "json")
    assert len([span for span in spans if span["name"].startswith("chat ")]) == 5
    assert len({span["spanId"] for span in spans}) == len(spans) == 6
    assert len(events) == 5
    assert {event["traceId"] for event in events} == {span["traceId"] for span in spans}


def decode(received: Received, protocol: str) -> tuple[list[Any], list[Any]]:
    spans: list[Any] = []
    events: list[Any] = []
    for path, _, body in received.requests:
        told = json.loads(body) if protocol == "json" else from_protobuf(path, body)
        for resource in told.get("resourceSpans", []):
            spans += [span for scope in resource["scopeSpans"] for span in scope["spans"]]
        for resource in told.get("resourceLogs", []):
            events += [event for scope in resource["scopeLogs"] for event in scope["logRecords"]]
    return spans, events


def from_protobuf(path: str, body: bytes) -> Any:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    kind = (
        trace_service_pb2.ExportTraceServiceRequest
        if path.endswith("traces")
        else logs_service_pb2.ExportLogsServiceRequest
    )
    return MessageToDict(kind.FromString(body))


def test_a_collector_that_is_not_there_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"127\.0\.0\.1:9"):
        export(run, "otel", tmp_path, {"endpoint": "http://127.0.0.1:9"})


@pytest.mark.filterwarnings("ignore")  # of rdflib, about how mlcroissant uses it
def test_mlcroissant_validates_the_description_and_reads_the_rows(run: Path, tmp_path: Path) -> None:
    croissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    (card, rows), _ = export(run, "croissant", tmp_path)
    dataset = croissant.Dataset(jsonld=str(card))
    assert not dataset.metadata.ctx.issues.errors
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    found = list(dataset.records("rows"))
    assert len(found) == len(told) == 40
    for record, row in zip(found, told, strict=True):
        assert record["rows/question"].decode() == row["question"]
        assert [text.decode() for text in record["rows/options"]] == row["options"]
    assert all((tmp_path / path).is_file() for row in told for path in row["images"])


@pytest.mark.filterwarnings("ignore")  # of rdflib, about how mlcroissant uses it
@pytest.mark.parametrize("parquet", [False, True])
def test_what_is_built_has_a_description_that_mlcroissant_reads(run: Path, parquet: bool, tmp_path: Path) -> None:
    croissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    with RunReader(run) as reader:
        samples = list(reader.samples("shapes"))
    write_bundle(samples, tmp_path / "bundle", parquet, name="shapes", licence="CC-BY-4.0")
    dataset = croissant.Dataset(jsonld=str(tmp_path / "bundle" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    found = list(dataset.records("rows"))
    assert [record["rows/id"].decode() for record in found] == [sample.id for sample in samples]
    assert [text.decode() for text in found[0]["rows/options"]] == list(samples[0].options)


def test_gates_become_junit_and_a_summary_of_the_step(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    gates = {"gate": "accuracy>=0.1; accuracy>=0.99; shapes:nonsense>=0.5", "failed": "0.5"}
    (file, summary), _ = export(run, "junit", tmp_path / "out", gates)
    suite = ElementTree.parse(file).getroot()[0]
    kinds = [
        next((child.tag for child in case if child.tag != "system-out"), "passed") for case in suite.iter("testcase")
    ]
    assert kinds == ["passed", "passed", "passed", "failure", "error"]
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "1", "5")
    assert step.read_text() == "before\n" + summary.read_text()
    assert len(summary.read_text().encode()) < 1 << 20
    by = {"gate": "accuracy>=0.65", "by": "interval", "failed": "0.5"}
    (file, _), _ = export(run, "junit", tmp_path / "out", by)
    assert ElementTree.parse(file).getroot()[0].get("failures") == "1", "the value passes, its interval does not"


def test_what_xml_forbids_is_not_written(tmp_path: Path) -> None:
    rows = [{"id": "1\x01", "question": "a|b <b>\x02", "options": ["x", "y"], "answer": "x", "response": "B"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = import_predictions(tmp_path / "rows.jsonl", output=tmp_path / "run", task="odd\x0btask")
    (file, summary), _ = export(done.folder, "junit", tmp_path / "out")
    ElementTree.parse(file)
    assert "<b>" not in summary.read_text()


def test_every_prediction_has_a_time_on_the_wall(run: Path) -> None:
    with RunReader(run) as reader:
        assert all(trial.prediction.at for trial in reader.trials("shapes"))


def test_an_older_run_says_that_its_times_are_estimated(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "1", "question": "?", "answer": "x", "response": "x"}))
    done = import_predictions(tmp_path / "rows.jsonl", output=tmp_path / "run")
    (_, samples), _ = export(done.folder, "eee", tmp_path / "out")
    assert json.loads(samples.read_text())["metadata"]["snellen.time"] == "estimated"


def test_the_command_writes_a_form_and_refuses_details_it_does_not_have(run: Path, tmp_path: Path) -> None:
    told = json_of("report", run, "--export", "eee", "-o", tmp_path, "--detail", "organization=Us")
    assert len(told["files"]) == 2
    assert json.loads(Path(told["files"][0]).read_text())["source_metadata"]["source_organization_name"] == "Us"
    assert run_command(["report", run, "--export", "eee", "-o", tmp_path, "--detail", "organisation=Us"]) == 2
    assert run_command(["report", run, "--export", "csv", "-o", tmp_path, "--detail", "a=b"]) == 2


def test_the_questions_of_an_export_can_be_asked_again_with_their_pictures(tmp_path: Path, mock_server: Any) -> None:
    golden = Path(__file__).parents[1] / "golden" / "data" / "bridges" / "openai-evals"
    (log,) = golden.glob("*.jsonl")
    told = json_of("import", log, "--as-data", tmp_path / "asked.jsonl")
    assert (told["questions"], told["pictures"]) == (5, 4), "of the call that failed nothing but its name is known"
    rows = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert rows[0]["question"] == "Which shape is drawn on the red sign?"
    assert (rows[0]["options"], rows[0]["answer"]) == (["circle", "square", "triangle", "star"], "square")
    (tmp_path / "asked.jsonl").write_text("\n".join(json.dumps(row) for row in rows if row["question"]))
    flags = ["--base-url", mock_server().base_url, "--quiet", "--no-cache", "-o", tmp_path / "run"]
    assert run_command(["run", tmp_path / "asked.jsonl", "--model", "openai/mock", *flags]) == 0
    with RunReader(tmp_path / "run") as reader:
        assert [len(trial.prediction.images) for trial in reader.trials("asked")] == [1, 1, 1, 1]


def test_a_dataset_without_replies_is_no_run_but_can_be_asked(tmp_path: Path) -> None:
    item = {
        "id": "i",
        "datasetId": "d",
        "input": {"question": "What?", "image": "data:image/png;base64,AA=="},
        "expectedOutput": "cat",
    }
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    told = json_of("import", tmp_path / "items.jsonl", "--as-data", tmp_path / "rows.jsonl")
    assert (told["questions"], told["pictures"], told["notes"]) == (1, 1, [])
    assert json.loads((tmp_path / "rows.jsonl").read_text())["answer"] == "cat"
    assert run_command(["import", tmp_path / "items.jsonl", "-o", tmp_path / "run"]) == 2


def test_what_only_the_importer_knows_goes_into_the_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": 1, "question": "?", "options": ["x", "y"], "answer": "x", "response": "A"}))
    details = ("dataset=org/bench", "task_id=default", "scale=percent")
    said = [word for detail in details for word in ("--detail", detail)]
    told = json_of("import", rows, "-o", tmp_path / "run", "--export", "hub", *said)
    assert len(told["exported"]) == 1 and "org/bench" in Path(told["exported"][0]).read_text()
    assert run_command(["import", rows, "-o", tmp_path / "other", *said]) == 2
    assert "--detail belongs to --export" in capsys.readouterr().err and not (tmp_path / "other").exists()


def test_predictions_of_another_harness_are_written_out_again(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "data" / "bridges" / "lm-eval" / "mc"
    told = json_of("import", golden, "-o", tmp_path / "run", "--export", "eee", "--export-to", tmp_path / "out")
    assert len(told["exported"]) == 2
    done = import_predictions(told["exported"][0], output=tmp_path / "again")
    assert facts_of(done.folder) == facts_of(tmp_path / "run")


def test_a_file_may_name_the_scorers_of_shipped_kits_as_those_of_the_core() -> None:
    from snellen.kits.bridges.foreign_rows import own_scoring

    for scorers in (("choice",), ("needle-shown",), ("needle",)):
        assert own_scoring({"scorers": scorers}) == {"scorers": scorers}
    assert own_scoring({"scorers": ("choice", "theirs")}) == {} == own_scoring({"scorers": ("peer",)})
