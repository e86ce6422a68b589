"""Files of other tools that are damaged, half written, of another version, or of a shape their golden files have not."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foreign_files import write_json, write_lines
from snellen.core.errors import DataError, SnellenError
from snellen.core.types import Form
from snellen.kits.bridges.damage import Damage
from snellen.kits.bridges.foreign_rows import ForeignFile, ForeignRow
from snellen.kits.bridges.formats import open_predictions
from snellen.kits.bridges.row_spool import spool_rows

GOLDEN = Path(__file__).parents[2] / "golden" / "data" / "bridges"
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def read(path: Path) -> tuple[list[ForeignRow], Damage, ForeignFile]:
    damage = Damage()
    file = open_predictions(path, damage)
    with closing(spool_rows(file, damage)) as spool:
        return list(spool), damage, file


WHOLE = [
    "lm-eval/mc/samples_made_mc_shared_2026-11-17T13-32-37.458410.jsonl",
    "lm-eval/gen/samples_made_gen_shared_2026-11-17T13-33-48.942034.jsonl",
    "nemo-evaluator/results.jsonl",
    "openai-evals/260102030405ABCDEFGH_dummy_made.jsonl",
    "every-eval-ever/data/bench/made-org/dummy/092d1f38-2f5b-4412-ac32-49fb62f0331f_samples.jsonl",
    "helm/made_shared-model=made_dummy/scenario_state.json",
    "evalscope/predictions/dummy/general_vmcq_shared.jsonl",
]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("share", [0.2, 0.55, 0.93])
def test_a_file_that_was_half_written_is_refused_in_one_line_or_counted(
    name: str, share: float, tmp_path: Path
) -> None:
    whole = (GOLDEN / name).read_bytes()
    path = tmp_path / Path(name).name
    path.write_bytes(whole[: int(len(whole) * share)])
    try:
        rows, _, _ = read(path)
    except SnellenError as error:
        assert "\n" not in str(error)
    else:
        assert len(rows) < len(read(GOLDEN / name)[0])


@pytest.mark.parametrize("name", WHOLE)
def test_values_of_another_kind_end_in_one_line_or_are_counted(name: str, tmp_path: Path) -> None:
    text = (GOLDEN / name).read_text()
    for wrong in ("null", "[]", "{}", '"x"', "7"):
        lines = text.splitlines()
        first = json.loads(lines[0] if name.endswith("jsonl") else text)
        record = first["request_states"][0] if "request_states" in first else first
        for key in list(record):
            path = tmp_path / Path(name).name
            changed = {**record, key: json.loads(wrong)}
            if "request_states" in first:
                write_json(path, {**first, "request_states": [changed]})
            else:
                write_lines(path, [changed])
            try:
                read(path)
            except SnellenError as error:
                assert "\n" not in str(error)


def test_a_record_of_another_version_is_refused_by_its_version(tmp_path: Path) -> None:
    row = json.loads((GOLDEN / WHOLE[4]).read_text().splitlines()[0]) | {"schema_version": "7.1.0"}
    with pytest.raises(DataError, match=r"7\.1\.0"):
        read(write_lines(tmp_path / "x_samples.jsonl", [row]))


def test_an_aggregate_without_its_samples_says_that_it_holds_no_trials(tmp_path: Path) -> None:
    aggregate = json.loads((GOLDEN / WHOLE[4].replace("_samples.jsonl", ".json")).read_text())
    with pytest.raises(DataError, match="no trials"):
        read(write_json(tmp_path / "a.json", aggregate))


def test_samples_that_are_not_the_aggregates_are_noted(tmp_path: Path) -> None:
    aggregate = json.loads((GOLDEN / WHOLE[4].replace("_samples.jsonl", ".json")).read_text())
    aggregate["detailed_evaluation_results"] = {"format": "jsonl", "file_path": "x", "checksum": "0" * 64}
    write_json(tmp_path / "a.json", aggregate)
    (tmp_path / "a_samples.jsonl").write_bytes((GOLDEN / WHOLE[4]).read_bytes())
    _, _, file = read(tmp_path / "a.json")
    assert any("checksum" in note for note in file.notes)


def test_rows_of_others_repeat_in_the_order_of_the_file_and_their_zero_is_a_verdict(tmp_path: Path) -> None:
    row = json.loads((GOLDEN / WHOLE[4]).read_text().splitlines()[0])
    row = {name: value for name, value in row.items() if name != "metadata"}
    zero = {**row, "evaluation": {"score": 0.0, "is_correct": False}, "output": {"raw": ["?"]}}
    rows, _, _ = read(write_lines(tmp_path / "x_samples.jsonl", [row, zero]))
    assert [(one.repeat, one.verdict) for one in rows] == [(0, 1.0), (1, 0.0)]


def test_lost_calls_of_evalscope_are_failures_where_the_run_ended_and_not_asked_where_it_was_stopped(
    tmp_path: Path,
) -> None:
    for kind in ("predictions", "reviews"):
        lines = [
            json.loads(line)
            for line in (GOLDEN / f"evalscope/{kind}/dummy/general_vmcq_shared.jsonl").read_text().splitlines()
        ]
        write_lines(
            tmp_path / kind / "dummy" / "general_vmcq_shared.jsonl",
            [one for one in lines if one["index"] not in (2, 6, 7)],
        )
    path = tmp_path / "predictions" / "dummy" / "general_vmcq_shared.jsonl"
    rows, _, file = read(path)
    assert len(rows) == 7
    assert any("stopped" in note for note in file.notes)
    report = json.loads((GOLDEN / "evalscope/reports/dummy/general_vmcq.json").read_text())
    write_json(tmp_path / "reports" / "dummy" / "general_vmcq.json", report)
    rows, damage, _ = read(path)
    lost = [(row.id, row.repeat, row.answers) for row in rows if row.failure]
    assert lost == [("1", 0, ("two",)), ("3", 0, ()), ("3", 1, ())]
    assert damage.counts["lost_call"] == 3


def test_helm_asks_references_one_by_one_as_one_trial(tmp_path: Path) -> None:
    def token(text: str, value: float) -> dict[str, Any]:
        return {"text": text, "logprob": value}

    def state(place: int, tokens: list[Any], mode: str = "original") -> dict[str, Any]:
        references = [{"output": {"text": "cat"}, "tags": []}, {"output": {"text": "big dog"}, "tags": ["correct"]}]
        return {
            "instance": {"id": "i1", "input": {"text": "?"}, "references": references, "split": "test"},
            "train_trial_index": 0,
            "reference_index": place,
            "request_mode": mode,
            "request": {"prompt": "Q:"},
            "result": {"success": True, "completions": [{"text": "", "logprob": 0, "tokens": tokens}]},
        }

    one = [token("Q:", -9.0), token(" cat", -2.0)]
    two = [token("Q:", -9.0), token(" big", -1.0), token(" dog", -1.5)]
    folder = tmp_path / "run"
    spec = {"name": "x:model=m", "adapter_spec": {"method": "multiple_choice_separate_original", "model": "m"}}
    write_json(folder / "run_spec.json", spec)
    write_json(folder / "scenario_state.json", {"adapter_spec": {}, "request_states": [state(0, one), state(1, two)]})
    (row,), _, _ = read(folder)
    assert row.loglikelihoods == (-2.0, -2.5)
    assert (row.reduction, row.detail["tokens"], row.answers) == ("mean", [1, 2], ("big dog",))


def test_perturbed_copies_of_helm_are_variants_and_completions_repeats(tmp_path: Path) -> None:
    whole = json.loads((GOLDEN / WHOLE[5]).read_text())
    state = whole["request_states"][0]
    changed = json.loads(json.dumps(state))
    changed["instance"]["perturbation"] = {"name": "typos", "prob": 0.1}
    several = json.loads(json.dumps(state))
    several["train_trial_index"] = 1
    several["result"]["completions"] *= 2
    several["request"]["num_completions"] = 2
    path = write_json(
        tmp_path / "scenario_state.json", {"adapter_spec": {}, "request_states": [state, changed, several]}
    )
    rows, _, _ = read(path)
    assert [row.variant.partition(":")[0] for row in rows] == ["base", "helm=typos", "base", "base"]
    assert [row.repeat for row in rows] == [0, 0, 2, 3]


LM = {"doc_id": 0, "filter": "none", "metrics": ["acc"], "acc": 1.0}


def test_options_that_are_letters_alone_take_the_documents_texts(tmp_path: Path) -> None:
    arguments = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": f" {mark}"} for i, mark in enumerate("AB")}
    row = {**LM, "doc": {"choices": ["cat", "dog"]}, "target": 1, "arguments": arguments}
    row |= {"resps": [[["-3.0", "False"]], [["-1.0", "True"]]], "filtered_resps": []}
    (one,), _, _ = read(write_lines(tmp_path / "samples_x.jsonl", [row]))
    assert (one.options, one.answers, one.loglikelihoods) == ({"A": "cat", "B": "dog"}, ("dog",), (-3.0, -1.0))


def test_the_log_likelihood_of_one_text_is_no_answer(tmp_path: Path) -> None:
    row = {**LM, "doc": {}, "target": "x", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " x"}}}
    row |= {"resps": [[["-3.0", "False"]]], "filtered_resps": []}
    with pytest.raises(DataError, match="one text"):
        read(write_lines(tmp_path / "samples_x.jsonl", [row]))


CHAT = [
    {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": PICTURE}},
            {"type": "text", "text": "What is it?\nA. cat\nB. dog"},
        ],
    }
]
FLAT = {
    "context.span_id": "s1",
    "span_kind": "LLM",
    "attributes.llm.input_messages": [
        {
            "message.role": "user",
            "message.contents": [
                {"message_content.type": "image", "message_content.image.image.url": PICTURE},
                {"message_content.type": "text", "message_content.text": "What is it?\nA. cat\nB. dog"},
            ],
        }
    ],
    "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "B"}],
    "expected": "B",
}
TRACES: dict[str, dict[str, Any]] = {
    "langfuse": {"id": "t", "projectId": "p", "input": {"messages": CHAT}, "output": {"role": "assistant", "content": "B"}, "expectedOutput": "B", "scores": [{"name": "ok", "value": 1}]},
    "phoenix": FLAT,
    "weave": {"id": "c", "op_name": "weave:///x/op/predict:1", "inputs": {"example": {"messages": CHAT, "expected": "B"}}, "output": {"output": "B", "scores": {"match": True}}},
    "mlflow": {"info": {"trace_id": "m", "assessments": [{"expectation": {"value": "B"}}]}, "data": {"spans": [{"attributes": {"mlflow.spanInputs": json.dumps({"messages": CHAT}), "mlflow.spanOutputs": json.dumps({"choices": [{"message": {"content": "B"}}]})}}]}},
    "mlflow dataset": {"inputs": {"messages": CHAT}, "outputs": "B", "expectations": {"expected_response": "B"}},
    "messages": {"id": "n", "messages": CHAT, "output": "B", "expected": "B", "scores": {"exact": 1.0}},
}  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_an_export_of_a_trace_store_is_read_with_its_picture(name: str, tmp_path: Path) -> None:
    (row,), damage, file = read(write_lines(tmp_path / "traces.jsonl", [TRACES[name]]))
    assert file.harness == "traces"
    assert (row.reply, row.answers, row.form) == ("B", ("dog",), Form.CHOICE)
    assert [image.ref for image in row.images] == [PICTURE]
    assert not damage.counts["reference"]


def test_pictures_that_an_export_only_names_are_counted_as_missing(tmp_path: Path) -> None:
    token = "@@@langfuseMedia:type=image/png|id=abc|source=base64@@@"
    langfuse = {"id": "t", "projectId": "p", "input": f"{token} What?", "output": "a cat", "expectedOutput": "a cat"}
    chat = [{"role": "user", "content": [{"image_url": "weave:///ref/x"}, {"text": "What?"}]}]
    rows, damage, _ = read(write_lines(tmp_path / "a.jsonl", [langfuse]))
    assert (damage.counts["reference"], rows[0].prompt) == (1, "What?")
    named = {"id": "n", "messages": chat, "output": "x", "expected": "x"}
    rows, damage, _ = read(write_lines(tmp_path / "b.jsonl", [named]))
    assert (damage.counts["reference"], rows[0].images) == (1, ())


def test_a_picture_outside_the_files_own_folders_is_never_taken(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"x")
    for ref in (str(tmp_path / "secret.png"), "../secret.png", "file:///etc/passwd", "a/../../secret.png"):
        chat = [{"role": "user", "content": [{"image_url": ref}, {"text": "What?"}]}]
        path = write_lines(
            tmp_path / "deep" / "er" / "er" / "er" / "b.jsonl", [{"messages": chat, "output": "x", "expected": "x"}]
        )
        rows, _, _ = read(path)
        assert rows[0].images == (), ref


def test_a_filter_that_stopped_a_reply_is_a_failure_unless_an_answer_was_read(tmp_path: Path) -> None:
    from snellen.kits.bridges.damage import stopped_by_filter

    assert stopped_by_filter("content_filter", "no") == "refused by the content filter: no"
    assert stopped_by_filter("SAFETY", "", None)
    assert stopped_by_filter("content_filter", "B", "B") is None
    assert stopped_by_filter("stop", "B") is None


def test_openai_events_without_a_reply_are_failures_and_later_samplings_repeats(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"spec": {"completion_fns": ["m"], "base_eval": "e"}}]
    for number, reply in enumerate(("B", "A")):
        events.append(
            {"event_id": number, "sample_id": "q", "type": "sampling", "data": {"prompt": CHAT, "sampled": [reply]}}
        )
        events.append(
            {
                "event_id": 9 + number,
                "sample_id": "q",
                "type": "match",
                "data": {"correct": reply == "B", "expected": "B", "picked": reply},
            }
        )
    rows, _, file = read(write_lines(tmp_path / "log.jsonl", events))
    assert [(row.repeat, row.reply, row.verdict) for row in rows] == [(0, "B", 1.0), (1, "A", 0.0)]
    assert any("did not end" in note for note in file.notes)
