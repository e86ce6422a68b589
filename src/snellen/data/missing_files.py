"""The files that samples name and that are not there: how many of each kind, and the first few by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..core.message_parts import all_pictures, all_videos
from ..core.text import plural
from ..core.types import Sample
from .images.decode import short_name
from .leaving import PictureFolders

NAMED = 5
"""So many are named."""
IMAGE, VIDEO, SUBTITLES = "image", "video", "subtitle file"


class MissingFiles:
    """Counts what is missing while samples go by."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self.first: list[str] = []

    def look(self, sample: Sample, folders: PictureFolders) -> int:
        """Take in the files of one sample; return how many pictures it names."""
        if not (sample.images or sample.videos or sample.turns):
            return 0
        pictures = all_pictures(sample)
        for image in pictures:
            if not folders.add(sample.id, image.ref):
                self._add(IMAGE, sample, image.ref)
        for kind, ref in _of_videos(sample):
            if not folders.add_video(sample.id, ref):
                self._add(kind, sample, ref)
        return len(pictures)

    @property
    def count(self) -> int:
        """Return how many files are missing."""
        return self._kinds.total()

    @property
    def said(self) -> str:
        """Return what is missing, kind by kind: `2 images and 1 video`; empty where nothing is."""
        kinds = [kind for kind in (IMAGE, VIDEO, SUBTITLES) if self._kinds[kind]]
        return " and ".join(plural(self._kinds[kind], kind) for kind in kinds)

    def _add(self, kind: str, sample: Sample, ref: str) -> None:
        self._kinds[kind] += 1
        if len(self.first) < NAMED:
            self.first.append(f"{sample.id}: {short_name(ref)}")


def _of_videos(sample: Sample) -> Iterator[tuple[str, str]]:
    for video in all_videos(sample):
        yield VIDEO, video.ref
        if video.subtitles:
            yield SUBTITLES, video.subtitles
