"""Request to model inputs: the chat template, the images, the token ids of prompt and candidates."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import PIL.Image

from ...core.errors import DataError, ModelError
from ...core.types import FailureKind, Image, Request, Turn
from ...data.images.decode import open_image
from ..plain import plain_text, separator
from .checkpoint import IMAGE_TEXT, first_line


class Clip(NamedTuple):
    """The frames of one video, and when they are shown."""

    frames: tuple[PIL.Image.Image, ...]
    seconds: tuple[float, ...]

    def metadata(self) -> dict[str, Any]:
        """Return what processors that write times between frames want to know."""
        span = self.seconds[-1] - self.seconds[0]
        fps = (len(self.seconds) - 1) / span if span > 0 else 1.0
        places = [round(second * fps) for second in self.seconds]
        return {"fps": fps, "frames_indices": places, "total_num_frames": places[-1] + 1}


def is_joined(image: Image) -> bool:
    """Tell whether a picture is a frame of a video that goes to the model as one."""
    return image.frame is not None and image.frame.joined


def begins_clip(images: Sequence[Image], place: int) -> bool:
    """Tell whether the picture at a place is the first of its video."""
    if not is_joined(images[place]):
        return False
    before = images[place - 1] if place else None
    return before is None or not is_joined(before) or _source(before) != _source(images[place])


def open_pictures(turn: Turn) -> list[PIL.Image.Image]:
    """Return the pictures of a message that are no frames of a video shown as one."""
    return [open_image(image).convert("RGB") for image in turn.images if not is_joined(image)]


def gather_clips(turn: Turn) -> list[Clip]:
    """Return the videos of a message, their frames opened."""
    starts = [place for place in range(len(turn.images)) if begins_clip(turn.images, place)]
    clips = []
    for start in starts:
        stop = start + 1
        while stop < len(turn.images) and is_joined(turn.images[stop]) and not begins_clip(turn.images, stop):
            stop += 1
        images = turn.images[start:stop]
        frames = tuple(open_image(image).convert("RGB") for image in images)
        clips.append(Clip(frames, tuple(image.frame.seconds for image in images if image.frame is not None)))
    return clips


def write_content(turn: Turn) -> list[dict[str, str]]:
    """Return a message in the words of chat templates: a part a text, a picture or a video."""
    kinds = [
        "image" if not is_joined(image) else "video" if begins_clip(turn.images, place) else ""
        for place, image in enumerate(turn.images)
    ]
    shown = turn.arrange([{"type": kind} for kind in kinds])
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return [part for part in parts if part["type"]]


def check_places(text: str, token: str, clips: Sequence[Clip]) -> None:
    """Refuse a prompt that has no place for a video: the model would be asked without it."""
    if clips and (not token or text.count(token) < len(clips)):
        raise ModelError(
            FailureKind.CAPABILITY,
            "the checkpoint's chat template has no place for videos: use -p prompt.video.route=frames",
        )


def video_arguments(groups: Sequence[Sequence[Clip]]) -> dict[str, Any]:
    """Return what a processor is told of the videos of a batch; nothing where there are none."""
    clips = [clip for group in groups for clip in group]
    if not clips:
        return {}
    return {
        "videos": [list(clip.frames) for clip in clips],
        "do_sample_frames": False,  # they were sampled by the policy of the run
        "video_metadata": [clip.metadata() for clip in clips],
    }


def _source(image: Image) -> str:
    """Return what frames of one video have in common: its file, or their folder."""
    still = image.frame is not None and image.frame.still
    return image.ref.rpartition("/")[0] if still else image.ref


TAIL_CHARACTERS = 256
"""How much of the prompt's end is tokenised together with a candidate: the boundary is what matters."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request ready for the model: rendered text, pixels, and where the text may be cut into earlier rounds."""

    request: Request
    text: str
    pictures: tuple[PIL.Image.Image, ...]
    rounds: tuple[str, ...] = ()
    """Leading parts of `text` that end with a finished round of the dialogue."""
    clips: tuple[Clip, ...] = ()
    """Videos, where frames go to the model as one."""
    tensors: dict[str, Any] | None = None
    """The model's inputs, where one prompt is one row: made ahead, in the worker thread."""


class LocalPrompter:
    """Turns requests into tensors through a checkpoint's own processor and chat template."""

    def __init__(self, processor: Any, kind: str, *, use_template: bool = True) -> None:
        self.processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self._one_at_a_time = threading.Lock()  # fast tokenizers keep their padding as state: two threads in one raise
        self.sees = kind == IMAGE_TEXT and getattr(processor, "image_processor", None) is not None
        self.has_template = use_template and getattr(processor, "chat_template", None) is not None
        self.image_token = self._find_image_token()
        self.video_token = str(getattr(processor, "video_token", "") or "")
        self.needs_image = self.sees and not self.has_template and not self.image_token

    def prepare(self, request: Request) -> Prepared:
        """Render the messages and open the images; runs in a worker thread."""
        if not self.sees and any(turn.images for turn in request.messages):
            raise ModelError(FailureKind.CAPABILITY, f"{request.key.sample}: the checkpoint takes no images")
        pictures, clips = _opened(request)
        if self.needs_image:
            pictures = self._one_picture(request, pictures)
        text = self.render(request.messages, answer=True) + request.prefix
        check_places(text, self.video_token, clips)
        tensors = self.encode([text], [pictures], [clips]) if request.choices else None
        return Prepared(request, text, pictures, self._rounds(request.messages, text), clips, tensors)

    def _one_picture(self, request: Request, pictures: tuple[PIL.Image.Image, ...]) -> tuple[PIL.Image.Image, ...]:
        """Return the one picture such an architecture takes: a grey one without, an error with more."""
        if len(pictures) > 1:
            raise ModelError(
                FailureKind.CAPABILITY,
                f"{request.key.sample}: {len(pictures)} images, the checkpoint takes one a question",
            )
        return pictures or (grey(),)

    def render(self, messages: Sequence[Turn], answer: bool) -> str:
        """Return the prompt as text; `answer` opens the model's turn."""
        if not self.has_template:
            return plain_text(messages, answer=answer, image_token=self.image_token)
        turns = [{"role": turn.role, "content": self._content(turn)} for turn in messages]
        try:
            return str(self.processor.apply_chat_template(turns, add_generation_prompt=answer, tokenize=False))
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(
                FailureKind.REQUEST, f"the checkpoint's chat template refuses the messages: {first_line(error)}"
            ) from None

    def encode(
        self,
        texts: Sequence[str],
        pictures: Sequence[Sequence[PIL.Image.Image]],
        clips: Sequence[Sequence[Clip]] = (),
    ) -> dict[str, Any]:
        """Return the tensors of a left-padded batch. Either all texts come with images or none."""
        bos = self.tokenizer.bos_token
        arguments: dict[str, Any] = {"return_tensors": "pt", "padding": len(texts) > 1}
        arguments |= video_arguments(clips)
        arguments["add_special_tokens"] = not (bos and all(text.startswith(bos) for text in texts))
        try:
            with self._one_at_a_time:
                if self.sees:
                    images = [list(group) for group in pictures] if any(pictures) else None
                    tensors = dict(self.processor(text=list(texts), images=images, **arguments))
                    tensors.pop("labels", None)  # for training (PaliGemma): as long as the prompt, never the answer's
                    return _pad_querying_right(tensors)
                return dict(self.tokenizer(list(texts), return_token_type_ids=False, **arguments))
        except (ValueError, TypeError, IndexError) as error:
            raise ModelError(
                FailureKind.REQUEST, f"the checkpoint's processor refuses the input: {first_line(error)}"
            ) from None

    def encode_candidates(self, text: str, candidates: Sequence[str], alone: bool) -> tuple[list[list[int]], str]:
        """Return the token ids of each candidate after `text`, and how the boundary was drawn.

        `joint`: prompt and candidate tokenised as one text, where that leaves the prompt's tokens as they are for
        every candidate; else (or if asked) `alone`.
        """
        if not alone:
            gap = separator(text)
            candidates = [gap + candidate for candidate in candidates]
            tail = text[-TAIL_CHARACTERS:]
            before = self._ids([tail])[0]
            whole = self._ids([tail + candidate for candidate in candidates])
            if all(ids[: len(before)] == before for ids in whole):
                return [ids[len(before) :] for ids in whole], "joint"
        return self._ids(candidates), "alone"

    def count_tail(self, text: str) -> list[int]:
        """Return the token ids of a piece of text without special tokens."""
        return self._ids([text])[0]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        with self._one_at_a_time:
            ids: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return ids

    def _content(self, turn: Turn) -> Any:
        if not self.sees:
            return turn.text
        return write_content(turn)

    def _rounds(self, messages: Sequence[Turn], text: str) -> tuple[str, ...]:
        """Return the leading parts that end a round, for a dialogue whose images all stand in its first round."""
        ends = [place + 1 for place, turn in enumerate(messages) if turn.role == "assistant"]
        if self.needs_image or not ends or any(turn.images for turn in messages[ends[0] :]):
            return ()
        parts = [self.render(messages[:end], answer=False) for end in ends]
        return tuple(part for part in parts if part and text.startswith(part) and len(part) < len(text))

    def _find_image_token(self) -> str:
        """Return the placeholder a plain prompt must carry; empty where the processor adds it by itself (BLIP)."""
        token = str(getattr(self.processor, "image_token", "") or "")
        if not self.sees or self.has_template or not token:
            return ""
        try:
            ids = self.processor(text=["x"], images=[[grey()]], return_tensors="pt")["input_ids"]
        except (ValueError, TypeError, IndexError):
            return token
        return "" if (ids == self.tokenizer.convert_tokens_to_ids(token)).any() else token


def _opened(request: Request) -> tuple[tuple[PIL.Image.Image, ...], tuple[Clip, ...]]:
    """Return the pictures and the videos of a request; one that cannot be read is its failure."""
    try:
        pictures = tuple(picture for turn in request.messages for picture in open_pictures(turn))
        return pictures, tuple(clip for turn in request.messages for clip in gather_clips(turn))
    except DataError as error:
        raise ModelError(FailureKind.DECODE, str(error)) from None


def _pad_querying_right(tensors: dict[str, Any]) -> dict[str, Any]:
    """Move the padding of the querying half's text (InstructBLIP) behind it.

    It counts positions from the left, so padding in front would move every word, and a reply depend on its batch.
    """
    mask = tensors.get("qformer_attention_mask")
    if mask is None or bool(mask[:, 0].all()):
        return tensors
    moved = dict(tensors)
    for name in ("qformer_input_ids", "qformer_attention_mask"):
        rows = zip(tensors[name].unbind(), mask.argmax(1).tolist(), strict=True)
        moved[name] = mask.new_tensor([row.roll(-padded).tolist() for row, padded in rows])
    return moved


def grey() -> PIL.Image.Image:
    """Return the picture that shows nothing, for architectures that cannot be asked without one."""
    return PIL.Image.new("RGB", (64, 64), "grey")
