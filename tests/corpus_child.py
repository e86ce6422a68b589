"""Reads hostile files, each in a child of its own with limits and a watch on what it does; prints one line a file.

python corpus_child.py FOLDER: lines of `READER<tab>PATH` on stdin, lines of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from command_line import run_command
from snellen.core.config import read_config_file
from snellen.core.errors import SnellenError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.images.encode import encode_moving
from snellen.kits.reform.corpus import read_pickled
from snellen.kits.reform.matlab import read_matrices
from snellen.perf.files import read_timeline

CPU_S = 10
WALL_S = 120
"""A crowded machine may take long; what counts is the work."""
FORBIDDEN = (
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "socket.getaddrinfo",
    "os.startfile",
)
READ, REFUSED, ESCAPED, CRASHED = 0, 3, 66, 67


def command(*words: object) -> int:
    return run_command(words)


def read_image(path: Path) -> int:
    """Draw it here: a process of its own, as a run has for this, could not be watched."""
    encode_moving(Image(str(path)), ImagePolicy(max_side=512))
    return READ


def plainly(read: Callable[[Path], object]) -> Callable[[Path], int]:
    def read_it(path: Path) -> int:
        read(path)
        return READ

    return read_it


READERS: dict[str, Callable[[Path], int]] = {
    "image": read_image,
    "table": lambda path: command("data", "check", path),
    "mat": plainly(read_matrices),
    "pickle": plainly(read_pickled),
    "toml": plainly(read_config_file),
    "timeline": plainly(read_timeline),
    "run": lambda path: command("show", path) or command("doctor", path),
}


def is_write(path: object, _: object, flags: object) -> bool:
    return isinstance(path, str) and isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def watch(folder: Path) -> None:
    """End this process at once when it runs a program, opens a connection or writes outside the folder."""

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event in FORBIDDEN:
            stop(f"{event} {arguments!r}")
        if event == "open" and is_write(*arguments):
            path = os.path.realpath(arguments[0])
            if not path.startswith((str(folder), "/dev/null")):
                stop(f"writes {path}")

    def stop(what: str) -> NoReturn:
        os.write(2, what.encode()[:500])
        os._exit(ESCAPED)

    sys.addaudithook(look)


def read_one(reader: str, path: Path, folder: Path) -> NoReturn:
    said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    signal.alarm(WALL_S)
    watch(folder)
    code = CRASHED
    try:
        code = READERS[reader](path)
    except SnellenError as error:
        print(f"error: {error}")
        code = REFUSED
    except BaseException:  # noqa: BLE001 - whatever it is, it is the finding
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    sys.dont_write_bytecode = True  # a file of ours that is compiled now is no escape
    folder = Path(sys.argv[1]).resolve()
    for line in sys.stdin.read().splitlines():
        reader, _, name = line.partition("\t")
        pid, started = os.fork(), time.monotonic()
        if pid == 0:
            read_one(reader, Path(name), folder)
        _, status, used = os.wait4(pid, 0)
        said = (folder / "said.txt").read_text(errors="surrogateescape")
        found = {
            "path": name,
            "code": os.waitstatus_to_exitcode(status),
            "said": said[-3000:],
            "escape": "\x1b" in said,
        }
        found |= {
            "mb": used.ru_maxrss / 1024,
            "cpu_s": used.ru_utime + used.ru_stime,
            "wall_s": time.monotonic() - started,
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
