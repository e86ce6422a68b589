"""inspect_ai's logs, `.eval` archives and plain JSON: one sample and epoch a row, finished or killed."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...core.errors import DataError, MissingExtra, SnellenError
from ...core.types import Form, Image
from ...data.files.jsonstream import iterate_with_header
from ...data.files.picture_zip import BAD_ZIP
from .damage import MALFORMED, Damage, stopped_by_filter
from .foreign_rows import (
    ForeignFile,
    ForeignRow,
    how_it_ended,
    is_nothing,
    lettered,
    own_scoring,
    plain_id,
    settle_gold,
    share,
    short_tags,
    shown_options,
    token_pair,
)
from .formats import ForeignSource, PredictionFormat

ZSTANDARD = 93
MEMBER_LIMIT = 256 << 20
"""A member that unpacks to more is no sample, but a reason to eat the machine's memory."""
_LOCAL_HEADER = struct.Struct("<26xHH")


class LogArchive:
    """A ZIP opened for reading; of members of one name the last counts, as its writers mean it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: BinaryIO = path.open("rb")
        try:
            self._archive = zipfile.ZipFile(self._stream)
        except BAD_ZIP as error:
            self._stream.close()
            raise DataError(f"{path} is no readable ZIP archive: {error}") from None
        self.members: dict[str, zipfile.ZipInfo] = {}
        self.repeated: list[str] = []
        for member in self._archive.infolist():
            if member.filename in self.members:
                self.repeated.append(member.filename)
            self.members[member.filename] = member

    def read(self, name: str) -> bytes:
        """Return the content of a member; one that is damaged or too large is refused by name."""
        member = self.members[name]
        try:
            if member.compress_type == ZSTANDARD:
                return self._unpack(member)
            with self._archive.open(member) as stream:
                return self._bounded(stream.read(MEMBER_LIMIT + 1), member)
        except (*BAD_ZIP, EOFError, struct.error) as error:
            raise DataError(f"{self._path}: member {name} cannot be read: {error}") from None

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("inspect", f"reading {self._path.name} (members compressed by Zstandard)") from None
        self._stream.seek(member.header_offset)
        name_length, extra_length = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        self._stream.seek(member.header_offset + _LOCAL_HEADER.size + name_length + extra_length)
        packed = io.BytesIO(self._stream.read(member.compress_size))
        try:
            # A member may hold several frames, one after the other.
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                # The reader sets aside as much as it is asked for, so it is asked for what the member says it has.
                size = min(member.file_size, MEMBER_LIMIT) + 1
                return self._bounded(stream.read(size), member)
        except zstandard.ZstdError as error:
            raise DataError(f"{self._path}: member {member.filename} cannot be unpacked: {error}") from None

    def _bounded(self, data: bytes, member: zipfile.ZipInfo) -> bytes:
        if len(data) > min(member.file_size, MEMBER_LIMIT):
            limit = f"{MEMBER_LIMIT >> 20} MB" if member.file_size > MEMBER_LIMIT else "it says"
            raise DataError(f"{self._path}: member {member.filename} unpacks to more than {limit}")
        return data

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
        self._stream.close()


HARNESS = "inspect"
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What its letters are worth."""
HEADER, START = "header.json", "_journal/start.json"
_ATTACHED = "attachment://"
_KEYS = ("version", "status", "eval", "invalidated")


def is_inspect(source: ForeignSource) -> bool:
    """Tell inspect's logs by their ending, or by how a log in JSON begins."""
    if source.ending == ".eval":
        return True
    if not source.is_object or source.first_key not in _KEYS:
        return False
    return any(key == "eval" for key, _ in iterate_with_header(source.path, ("samples",), nan=True))


def open_inspect(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a log; one whose run was killed has no numbers of its own, and is read as far as it goes."""
    path, notes = source.path, list[str]()
    header, samples = _archived(path, damage, notes) if source.ending == ".eval" else _plain(path)
    if header.get("status") not in ("success", None):
        notes.append(f"the log says its run ended as {header['status']!r}")
    shuffled = _is_shuffled(header.get("plan") or {})
    rows = (own_row(sample_row(sample, damage, shuffled=shuffled), sample) for sample in samples)
    spec, results = header.get("eval") or {}, header.get("results") or {}
    task, model = str(spec.get("task") or path.stem).rpartition("/")[2], str(spec.get("model") or "")
    ours = (spec.get("metadata") or {}).get("snellen") or {}
    scoring = own_scoring(ours.get("task") or {})
    expected = ours.get("planned") or _expected(spec, results)
    return ForeignFile(HARNESS, path, rows, task, model, _reported(results), expected, notes, scoring)


def _is_shuffled(plan: Mapping[str, Any]) -> bool:
    return any((step.get("params") or {}).get("shuffle") for step in plan.get("steps") or [])


def _decode(data: bytes) -> Any:
    """Decode a member; bare NaN, which marks a sample without a score, is no JSON and is read all the same."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)


def _archived(path: Path, damage: Damage, notes: list[str]) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return header and samples of an archive; listing its members takes long enough to do it once."""
    archive = LogArchive(path)
    try:
        return _archived_header(archive, path, notes), _archived_samples(archive, damage)
    except (SnellenError, *MALFORMED):
        archive.close()
        raise


def _archived_header(archive: LogArchive, path: Path, notes: list[str]) -> dict[str, Any]:
    name = next((name for name in (HEADER, START) if name in archive.members), None)
    if name is None:
        raise DataError(f"{path} is no log of inspect_ai: it has neither {HEADER} nor {START}")
    if name == START:
        notes.append("the run was killed: the log has no header, only what was written until then")
    value = _decode(archive.read(name))
    if not isinstance(value, dict):
        raise DataError(f"{path}: member {name} is no object, as a log's header is")
    return value


def _archived_samples(archive: LogArchive, damage: Damage) -> Iterator[dict[str, Any]]:
    with closing(archive):
        for name in archive.repeated:
            if name.startswith("samples/"):
                damage.add("superseded", Path(name).stem)
        for name in archive.members:
            if name.startswith("samples/") and name.endswith(".json"):
                yield _decode(archive.read(name))


def _plain(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    header = {key: value for key, value in iterate_with_header(path, ("samples",), nan=True) if key != "element"}
    parts = iterate_with_header(path, ("samples",), nan=True)
    return header, (value for key, value in parts if key == "element")


def sample_row(sample: Mapping[str, Any], damage: Damage, *, shuffled: bool = False) -> ForeignRow:
    """Return one sample and epoch as a row; an error is a failure, and a score that is NaN is none."""
    name, output = plain_id(sample.get("id")), sample.get("output") or {}
    question, images = _content(sample.get("input"), sample.get("attachments") or {})
    prompt, _ = _content((sample.get("messages") or [])[:2], {})
    options = lettered(sample["choices"]) if sample.get("choices") else shown_options(prompt)
    gold = settle_gold(options, sample.get("target"), name, damage)
    score = _score(sample.get("scores"))
    reply, failure = _reply(sample, output, name, damage)
    refused = None if failure else stopped_by_filter(_finish(output), reply or "", score.get("answer"))
    reply, failure = (None, refused) if refused else (reply, failure)
    if shuffled:
        damage.add("shuffled", name)
    return ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        max(0, int(sample.get("epoch") or 1) - 1),
        question=question,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        images=images,
        finish=_finish(output),
        tags=short_tags(sample.get("metadata") or {}, frozenset()),
        tokens=token_pair(output.get("usage"), ("input_tokens", "output_tokens")),
        read_answer=None if is_nothing(score.get("answer")) else str(score["answer"]),
        verdict=None if failure else _grade(score.get("value")),
        reasoning=_reasoning(output),
        latency_s=_seconds(sample.get("working_time", output.get("time"))),
    )


def own_row(row: ForeignRow, sample: Mapping[str, Any]) -> ForeignRow:
    """Return a row of a log that Snellen wrote with what only Snellen knows: which variant, which values an option."""
    ours = (sample.get("metadata") or {}).get("snellen")
    if not isinstance(ours, dict) or "sample" not in ours:
        return row
    shown = list(sample.get("choices") or ())
    marks = ours.get("marks") or list(lettered(shown))
    options = dict(zip(map(str, marks), map(str, shown), strict=False))
    likelihoods = tuple(float(value) for value in ours.get("loglikelihoods") or ())
    failure = ours.get("failure") or {}
    return msgspec.structs.replace(
        row,
        id=plain_id(ours["sample"]),
        variant=str(ours.get("variant") or row.variant),
        form=Form(ours.get("form") or row.form),
        question=str(ours.get("question") or row.question),
        options=options,
        answers=tuple(ours.get("answers") or ()),
        group=ours.get("group"),
        finish=ours.get("finish"),
        reply=None if likelihoods else row.reply,
        failure=f"{failure['kind']}: {failure['message']}" if failure and row.failure else row.failure,
        loglikelihoods=likelihoods,
        reduction=str(ours.get("reduction") or "sum"),
        detail={**row.detail, **(ours.get("counts") or {})},
        at=sample.get("completed_at") if ours.get("time") == "noted" else None,
    )


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _reasoning(output: Mapping[str, Any]) -> str | None:
    """Return what the model thought aloud, which inspect takes off its reply."""
    choices = output.get("choices") or [{}]
    content = (choices[0].get("message") or {}).get("content")
    parts = [part for part in content if part.get("type") == "reasoning"] if isinstance(content, list) else []
    return str(parts[0].get("reasoning") or "") if parts else None


def _reply(
    sample: Mapping[str, Any], output: Mapping[str, Any], name: str, damage: Damage
) -> tuple[str | None, str | None]:
    error = sample.get("error") or output.get("error")
    if error:
        return None, str(error.get("message") if isinstance(error, dict) else error)
    text = str(output["completion"] or "") if "completion" in output else _said(output, sample.get("attachments") or {})
    if not text:
        damage.add("empty", name)
    return text, None


def _said(output: Mapping[str, Any], attachments: Mapping[str, str]) -> str:
    """Return the texts of the first choice: logs of older versions hold them there and nowhere else."""
    message = next((choice.get("message") or {} for choice in output.get("choices") or []), {})
    return _content([{"content": message.get("content")}], attachments)[0]


def _finish(output: Mapping[str, Any]) -> str | None:
    return how_it_ended(next((choice.get("stop_reason") for choice in output.get("choices") or []), None))


def _score(scores: Any) -> Mapping[str, Any]:
    if not isinstance(scores, dict) or not scores:
        return {}
    chosen = scores.get("choice") or next(iter(scores.values()))
    return chosen if isinstance(chosen, dict) else {}


def _grade(value: Any) -> float | None:
    return GRADES[value] if isinstance(value, str) and value in GRADES else share(value)


def _content(value: Any, attachments: Mapping[str, str]) -> tuple[str, tuple[Image, ...]]:
    """Return the user's texts, joined, and the pictures that the log still holds."""
    if isinstance(value, str):
        return _attached(value, attachments), ()
    parts = [part for message in value or [] for part in _parts(message)]
    texts = [_attached(str(part.get("text") or ""), attachments) for part in parts if part.get("type") == "text"]
    refs = [_attached(str(part.get("image") or ""), attachments) for part in parts if part.get("type") == "image"]
    return "\n".join(texts), tuple(Image(ref) for ref in refs if ref.startswith(("data:image/", "https://")))


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of what a user says; of others nothing."""
    if message.get("role") not in (None, "user"):
        return []
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _attached(text: str, attachments: Mapping[str, str]) -> str:
    return attachments.get(text.removeprefix(_ATTACHED), text) if text.startswith(_ATTACHED) else text


def _reported(results: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for score in results.get("scores") or []:
        for name, metric in (score.get("metrics") or {}).items():
            value = metric.get("value") if isinstance(metric, dict) else None
            if isinstance(value, int | float) and name not in ("stderr", "std"):
                found[f"{score.get('name')} {name}"] = float(value)
    return found


def _expected(spec: Mapping[str, Any], results: Mapping[str, Any]) -> int | None:
    total = results.get("total_samples")
    if isinstance(total, int) and total:
        return total
    samples = (spec.get("dataset") or {}).get("samples")
    config = spec.get("config") or {}
    if not isinstance(samples, int) or config.get("limit"):
        return None
    return samples * int(config.get("epochs") or 1)


FORMAT = PredictionFormat(is_inspect, open_inspect)
