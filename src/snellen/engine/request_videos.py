"""A request's videos to the frames that stand for them, when its turn has come; and what is recorded of each."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..core.errors import UsageError
from ..core.message_parts import Piece, assemble_turn
from ..core.protocols import Capability, Model
from ..core.types import Prediction, Request, Showing, Turn, Video
from ..data.video.unfold import FILE, FRAMES, JOINED, unfold


class ShownRequest(NamedTuple):
    """A request as it is sent, and a record a video."""

    request: Request
    records: list[dict[str, Any]]

    def noted(self, prediction: Prediction) -> Prediction:
        """Return the prediction with what was shown of the videos."""
        return replace(prediction, detail={**prediction.detail, "videos": self.records})


def has_videos(request: Request) -> bool:
    """Tell whether a video waits to be shown."""
    for turn in request.messages:  # noqa: SIM110 - a generator costs more, and every request comes by here
        if turn.parts and any(isinstance(part, Video) for part in turn.parts):
            return True
    return False


def video_route(model: Model, showing: Showing) -> str:
    """Return how this model is shown a video; what it cannot take is refused by name."""
    if showing.route == "frames":
        if Capability.IMAGES not in model.capabilities:
            raise UsageError(f"model {model.name!r} takes no images, and frames of videos are images")
        return FRAMES
    for capability, route in ((Capability.VIDEO_FRAMES, JOINED), (Capability.VIDEO_FILE, FILE)):
        if capability in model.capabilities:
            return route
    raise UsageError(f"model {model.name!r} takes no videos: show their frames (-p prompt.video.route=frames)")


async def unfold_videos(request: Request, model: Model) -> ShownRequest:
    """Return the request with its videos as this model is shown them; raise DataError where one cannot be read."""
    return await asyncio.to_thread(unfold_videos_now, request, model)


def unfold_videos_now(request: Request, model: Model, *, rough: bool = False) -> ShownRequest:
    """Do the same where nobody waits: it opens files. `rough`: for an estimate, without what takes long."""
    records: list[dict[str, Any]] = []
    turns = [_unfold_turn(turn, model, records, rough=rough) for turn in request.messages]
    return ShownRequest(replace(request, messages=tuple(turns)), records)


def _unfold_turn(turn: Turn, model: Model, records: list[dict[str, Any]], *, rough: bool) -> Turn:
    if not any(isinstance(part, Video) for part in turn.parts):
        return turn
    pieces: list[Piece] = []
    for part in turn.parts:
        if isinstance(part, Video):
            unfolded = unfold(part, video_route(model, part.showing), rough=rough)
            records.append(unfolded.record)
            pieces += unfolded.pieces
        else:
            pieces.append(turn.images[part] if isinstance(part, int) else part)
    return assemble_turn(turn.role, pieces)
