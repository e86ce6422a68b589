"""What a harness does with a reply it cannot read: counts it as wrong, draws a letter, or leaves it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ...core.errors import UsageError, did_you_mean, not_among
from ...core.types import Form
from ...extract.profiles import parse_aisbench, parse_flageval
from ...scoring.protocols.peer_scores import draw_letter
from .text_rules import TEXT_RULES, YES_NO_RULES
from .toolkit_rules import (
    can_infer,
    can_infer_after_answer,
    read_alone,
    read_first_character,
    read_first_letter,
    read_letter_or_dotted,
    read_letter_unpunctuated,
    read_mcq,
    read_mmbench_static,
    read_mmmu,
    read_raw_letter,
    read_vstar,
)
from .video_rules import (
    read_before_bracket,
    read_bracketed,
    read_egoschema,
    read_first_word,
    read_longvideobench,
    read_longvideobench_kit,
    read_motionbench,
    read_mvbench_lmms,
    read_spatial_kit,
    read_tempcompass,
    read_video_mme,
    read_video_mme_kit,
    read_video_mmmu,
    read_video_mmmu_kit,
)

_MARKER = re.compile(r"ANSWER\s*:\s*\**\s*", re.IGNORECASE)
_BRACKETED = re.compile(r"[(\[（【]\s*([A-Za-z\d](?:\s*[,，]\s*[A-Za-z\d])*)\s*[)\]）】]")
_PLAIN = re.compile(r"([A-Za-z\d][A-Za-z\d ,]*)")
_WORD = re.compile(r"[A-Za-z\d]+")


def read_last_answer(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the label after the last `ANSWER:` that is followed by one; several labels are none.

    Without such a marker the last capital of the whole reply counts, whatever word it opens: `I see a Dog` is D.
    """
    labels = _last_labels(reply, options)
    if labels is not None:
        return labels if labels in options else None
    last = next((character for character in reversed(reply) if character.isupper()), None)
    return last if last in options else None


def _last_labels(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the labels after the last marker that has any: the leading words made of nothing but labels."""
    for marker in reversed(list(_MARKER.finditer(reply))):
        for shape in (_BRACKETED, _PLAIN):
            match = shape.match(reply, marker.end())
            labels = _leading(match[1], options) if match else ""
            if labels:
                return labels
    return None


def _leading(text: str, options: Mapping[str, str]) -> str:
    end = 0
    for word in _WORD.finditer(text):
        if not set(word[0]) <= options.keys():
            break
        end = word.end()
    return text[:end].strip().rstrip(".")


_OWN_LINE = re.compile(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", re.IGNORECASE)


def read_answer_line(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter after `ANSWER:`, first on a line of its own, else anywhere; without it the reply is wrong."""
    match = _OWN_LINE.search(reply) or _ANYWHERE.search(reply)
    if match is None:
        return None
    said = match[1].strip().rstrip(".").upper()
    return said if said in options else None


ReadLetter = Callable[[str, Mapping[str, str]], str | None]
WRONG, RANDOM = "wrong", "random"


class PeerReader(Struct, frozen=True):
    """One harness's rule for a lettered reply, by name, and what it does where the rule finds nothing."""

    name: str
    read: ReadLetter
    unread: str = WRONG
    """`wrong`, or `random`: a letter is drawn, so that the same file scores differently each time."""
    failures: str = "answers"
    """`answers`: a failed call's text is read like a reply and counts; `left out`: it leaves the denominator."""
    source: str = ""
    """Where the rule was seen."""


def _flageval(reply: str, options: Mapping[str, str]) -> str | None:
    parsed = parse_flageval(reply)
    return parsed[0] if parsed else None


def _aisbench(reply: str, options: Mapping[str, str]) -> str | None:
    parsed = parse_aisbench(reply)
    return parsed[0] if parsed else None


_V, _L = "VLMEvalKit e8e78f0", "lmms-eval 75571cf"
PEER_READERS: Final[Mapping[str, PeerReader]] = {
    reader.name: reader
    for reader in (
        PeerReader("vlmevalkit", can_infer, source=f"{_V} vlmeval/utils/matching_util.py"),
        PeerReader("vlmevalkit-cot", can_infer_after_answer, source=f"{_V} vlmeval/dataset/image_mcq.py"),
        PeerReader("lmms-mmmu", read_mmmu, RANDOM, source=f"{_L} _task_utils/mmmu_mcq_utils.py; official MMMU-Pro"),
        PeerReader("lmms-mcq", read_mcq, source=f"{_L} _task_utils/mcq_extract.py"),
        PeerReader("lmms-mmbench", read_mmbench_static, source=f"{_L} mmbench_evals.py"),
        PeerReader("lmms-first-letter", read_first_letter, source=f"{_L} blink, cv_bench"),
        PeerReader("lmms-vstar", read_vstar, source=f"{_L} vstar_bench"),
        PeerReader("lmms-first-of-four", read_vstar, source="the former name of lmms-vstar, in runs of 0.2"),
        PeerReader("lmms-first-character", read_first_character, source=f"{_L} seedbench"),
        PeerReader("lmms-letter-or-dotted", read_letter_or_dotted, source=f"{_L} muirbench, scienceqa"),
        PeerReader("lmms-letter-unpunctuated", read_letter_unpunctuated, source=f"{_L} ai2d"),
        PeerReader("lmms-alone", read_alone, source=f"{_L} perceptiontest"),
        PeerReader("lmms-raw-letter", read_raw_letter, source=f"{_L} mmmu_pro vision"),
        PeerReader("inspect-choice", read_answer_line, failures="left out", source="inspect_ai 499e615 choice()"),
        PeerReader("evalscope", read_last_answer, source="evalscope 1617436 utils/multi_choices.py"),
        PeerReader("flageval", _flageval, failures="left out", source="FlagEvalMM fef27ec base_evaluator.py"),
        PeerReader("aisbench", _aisbench, source="AISBench first_option_postprocess"),
        PeerReader("video-mme", read_video_mme, source="Video-MME 4e7566d eval_your_results.py"),
        PeerReader("vlmevalkit-video-mme", read_video_mme_kit, source="VLMEvalKit 21a3ff0 utils/videomme.py"),
        PeerReader("longvideobench", read_longvideobench, RANDOM, source="lmms-eval 03a5823 longvideobench"),
        PeerReader("vlmevalkit-longvideobench", read_longvideobench_kit, source="VLMEvalKit 18c22ab"),
        PeerReader("lvbench", read_bracketed, source="LVBench 1dd4612, MotionBench 8c131ac answer_util.py"),
        PeerReader("mlvu", read_before_bracket, source="VLMEvalKit 51ba229 utils/mlvu.py, a copy of MLVU's own"),
        PeerReader("lmms-mvbench", read_mvbench_lmms, source="lmms-eval 1ab9504 mvbench"),
        PeerReader("lmms-egoschema", read_egoschema, RANDOM, source=f"{_L} egoschema"),
        PeerReader("tempcompass", read_tempcompass, source="lmms-eval 06f392e, VLMEvalKit 006aa29 tempcompass"),
        PeerReader("lmms-motionbench", read_motionbench, source="lmms-eval 12a4e4e motionbench"),
        PeerReader("video-mmmu", read_video_mmmu, source="Video-MMMU's own, as older lmms-eval has it (00fa502)"),
        PeerReader("vlmevalkit-video-mmmu", read_video_mmmu_kit, source="VLMEvalKit 0525862 videommmu.py"),
        PeerReader("vsi-bench", read_first_word, source=f"{_L} vsibench, and the benchmark's own"),
        PeerReader("vlmevalkit-vsi", read_spatial_kit, source=f"{_V} spatial_bench/matching_func.py"),
    )
}


def peer_reader(name: str) -> PeerReader:
    """Return a harness's reader by name, or say which there are."""
    if name not in PEER_READERS:
        known = ", ".join(PEER_READERS)
        raise UsageError(f"unknown peer reader {name!r}{did_you_mean(name, PEER_READERS)}; known: {known}")
    return PEER_READERS[name]


class PeerVerdict(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a harness makes of one reply; `value` None: the row leaves its denominator."""

    value: float | None
    read: str | None = None
    """The letter or word it read, or the letter it drew."""
    drawn: bool = False
    """Nothing was read, and a random letter took its place."""


class PeerProtocol(Struct, frozen=True):
    """The rules by which one harness reads one benchmark, by the form of the question; None: no rule is known."""

    choice: PeerReader | None = None
    yesno: Callable[[str], str | None] | None = None
    open: Callable[[str, Sequence[str]], float] | None = None
    failures: str = "answers"

    def judge(
        self, form: Form, reply: str, options: Mapping[str, str], answers: Sequence[str], sample: str
    ) -> PeerVerdict | None:
        """Return what the harness makes of a reply, or None where no rule of its is known for the form."""
        if form is Form.CHOICE and self.choice is not None:
            return _judge_choice(self.choice, reply, options, answers, sample)
        if form is Form.YESNO and self.yesno is not None:
            said = self.yesno(reply)
            return PeerVerdict(float(said is not None and said.lower() in answers), said)
        if form is Form.OPEN and self.open is not None:
            return PeerVerdict(self.open(reply, answers), reply)
        return None


def _judge_choice(
    reader: PeerReader, reply: str, options: Mapping[str, str], answers: Sequence[str], sample: str
) -> PeerVerdict:
    letter = reader.read(reply, options)
    drawn = letter is None and reader.unread == RANDOM and bool(options)
    if drawn:
        letter = draw_letter(list(options), sample)
    return PeerVerdict(float(letter is not None and options.get(letter) in answers), letter, drawn)


def peer_protocol(choice: str, yesno: str, open_rule: str) -> PeerProtocol:
    """Return the rules of these names; an empty name is no rule, one that does not exist is refused."""
    for name, known in ((choice, PEER_READERS), (yesno, YES_NO_RULES), (open_rule, TEXT_RULES)):
        if name and name not in known:
            raise UsageError(f"unknown rule of a harness {not_among(name, known)}")
    reader = PEER_READERS.get(choice)
    failures = reader.failures if reader is not None else "answers"
    return PeerProtocol(reader, YES_NO_RULES.get(yesno), TEXT_RULES.get(open_rule), failures)
