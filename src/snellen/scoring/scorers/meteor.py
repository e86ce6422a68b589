"""Turns captions into METEOR 1.5 and PTB tokens by the two Java programs of the extra `caption`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...core.errors import EnvironmentProblem, MissingExtra
from .caption_metrics import Caption

TIMEOUT_S = 1800.0
_PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
_METEOR_JAR = Path("meteor", "meteor-1.5.jar")
_TOKENISER_JAR = Path("tokenizer", "stanford-corenlp-3.4.1.jar")


def missing_reason() -> str | None:
    """Return why METEOR and PTB tokens cannot be had on this machine, or None if they can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        return "needs an extra that is not installed: pip install 'snellen[caption]'"
    return None if shutil.which("java") else "needs Java (a `java` command) and there is none"


def meteor(captions: Sequence[Caption]) -> tuple[float, list[float]]:
    """Return METEOR of the corpus and of each caption (0..1). Line breaks, `|||` and empty texts are safe."""
    if not captions:
        return 0.0, []
    with _java(["-Xmx2G", "-jar", str(_jar(_METEOR_JAR)), "-", "-", "-stdio", "-l", "en", "-norm"]) as (write, read):
        statistics = [_ask(write, read, " ||| ".join(["SCORE", *_fields(caption)])) for caption in captions]
        write.write("EVAL ||| " + " ||| ".join(statistics) + "\n")
        write.flush()
        values = [_number(read.readline()) for _ in captions]
        return _number(read.readline()), values


def _fields(caption: Caption) -> list[str]:
    """One line, fields between bars: a line break inside a text would shift all others and block for ever.

    Bars are taken out of captions only; in a reference they make two references of it, as in the COCO evaluation.
    """
    return [
        *(_one_line(text) for text in caption.references),
        _one_line(caption.text).replace("|||", "").replace("  ", " "),
    ]


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def _ask(write: IO[str], read: IO[str], line: str) -> str:
    write.write(line + "\n")
    write.flush()
    answer = read.readline().strip()
    if not answer:
        raise EnvironmentProblem("METEOR ended without an answer: check that `java` runs and has 2 GB of memory")
    return answer


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        raise EnvironmentProblem(f"METEOR answered {line.strip()[:60]!r} where a number belongs") from None


@contextmanager
def _java(arguments: list[str]) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run Java with text pipes; it is ended on the way out and, so that nothing can hang, after TIMEOUT_S."""
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", *arguments]
    process = subprocess.Popen(  # noqa: S603 - a fixed program of the extra, no shell
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    )
    watchdog = threading.Timer(TIMEOUT_S, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both are pipes
        yield process.stdin, process.stdout
    except BrokenPipeError:
        raise EnvironmentProblem("METEOR ended early: check that `java` runs and has 2 GB of memory") from None
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def tokenise_ptb(texts: Sequence[str]) -> list[str]:
    """Return each text as lower-case PTB tokens without punctuation, as the COCO caption evaluation prepares it."""
    if not texts:
        return []
    command = [
        "java",
        "-Dfile.encoding=UTF-8",
        "-cp",
        str(_jar(_TOKENISER_JAR)),
        "edu.stanford.nlp.process.PTBTokenizer",
    ]
    lines = "\n".join(" ".join(text.splitlines()) for text in texts) + "\n"
    finished = subprocess.run(  # noqa: S603 - a fixed program of the extra, no shell
        [*command, "-preserveLines", "-lowerCase"],
        input=lines.encode("utf-8", "replace"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )
    tokenised = finished.stdout.decode("utf-8", "replace").split("\n")[: len(texts)]
    if finished.returncode or len(tokenised) != len(texts):
        raise EnvironmentProblem(
            f"the PTB tokeniser gave {len(tokenised)} lines for {len(texts)} texts: check that `java` runs"
        )
    return [" ".join(token for token in line.split() if token not in _PUNCTUATION) for line in tokenised]


def _jar(relative: Path) -> Path:
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("caption", "METEOR")
    if not shutil.which("java"):
        raise EnvironmentProblem("METEOR and PTB tokens need Java: install a Java runtime so that `java` is found")
    return Path(next(iter(spec.submodule_search_locations))) / relative
