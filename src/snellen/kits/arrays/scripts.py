"""A run's command to scripts that people can read, edit and submit: a Slurm array, a Kubernetes indexed job.

Each part is `snellen run … --shard K/N`, and its exit code says what to do: 0 complete, 75 start me again, all else no.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import EXIT_AGAIN, EnvironmentProblem, UsageError
from ...core.homes import SUBMIT_FOLDER
from ...report.files import atomic_file
from .parts import look_at_parts

MOST_PARTS = 1_000
"""Slurm's MaxArraySize is 1001 unless the site raised it."""
MOST_RESTARTS = 20
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?")
"""So that `snellen-NAME-999`, the name of a pod's host, is no longer than the 63 letters that Kubernetes allows."""
SLURM_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a script is made of, beside the command of the run."""

    parts: int
    parallel: int | None = None
    """Parts at work at once."""
    time: str = "04:00:00"
    partition: str = ""
    account: str = ""
    gpus: str = ""
    cpus: int | None = None
    memory: str = ""
    warn_s: int = 120
    """Seconds before its time limit in which a part drains and asks to be started again."""
    setup: tuple[str, ...] = ()
    """Lines before the command: modules, an environment."""
    options: tuple[str, ...] = ()
    """Further lines for the scheduler."""
    serve: str = ""
    """The command of a server that all parts ask; it gets a job of its own."""
    port: int = 8000
    image: str = "snellen"
    claim: str = "shared"
    mount: str = "/shared"
    only: tuple[int, ...] = ()
    """Only these parts, of so many: what is left of an earlier submission."""


def snellen_command() -> str:
    """Return what starts Snellen, as it was started now: batch jobs may have another PATH."""
    beside = Path(sys.executable).with_name("snellen")
    return shlex.join([str(beside)] if beside.exists() else [sys.executable, "-m", "snellen"])


def share_limits(arguments: Sequence[str], parts: int, parallel: int) -> list[str]:
    """Return a run's arguments with the limits of the whole run divided: rate and workers by the parts at work at once,
    money and a number of errors by all parts."""
    shares: dict[str, Callable[[str], str]] = {
        "--rate": lambda text: f"{float(text) / parallel:.6g}",
        "--max-workers": lambda text: str(max(1, int(text) // parallel)),
        "--num-workers": lambda text: str(max(1, int(text) // parallel)),
        "--max-cost": lambda text: f"{float(text) / parts:.6g}",
        "--max-errors": lambda text: text if text.endswith("%") else str(math.ceil(int(text) / parts)),
    }
    made: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if made and made[-1] in shares and not equals:
            made.append(shares[made[-1]](argument))
        elif equals and name in shares:
            made.append(f"{name}={shares[name](value)}")
        else:
            made.append(argument)
    return made


def unfinished_parts(folder: Path) -> tuple[int, tuple[int, ...]]:
    """Return of how many parts a run is, and which of them are neither complete nor at work."""
    states = look_at_parts(folder)
    if not states:
        raise UsageError(f"{folder} holds no parts yet: submit it without --again")
    left = tuple(one.part.index for one in states if one.state not in ("complete", "running"))
    if not left:
        running = sum(one.state == "running" for one in states)
        told = f"{running} of them run now" if running else f"`snellen merge {folder}`"
        raise UsageError(f"no part of {folder} is left to be started: {told}")
    return states[0].part.count, left


def check(what: Submission) -> None:
    """Refuse what no scheduler can do."""
    if what.parts > MOST_PARTS:
        raise UsageError(f"--parts {what.parts}: Slurm's arrays end at {MOST_PARTS} unless your site says otherwise")
    if what.parallel is not None and what.parallel > what.parts:
        raise UsageError(f"--parallel {what.parallel} is more than --parts {what.parts}")
    for line in (*what.setup, *what.options):
        if "\n" in line:
            raise UsageError("--setup and --option take one line each; repeat them for more")


def limit_s(text: str) -> int | None:
    """Return the seconds of a time limit as Slurm writes them; None where it is none, or only Slurm knows it."""
    match = SLURM_TIME.fullmatch(text)
    if match is None:
        return None
    days, *numbers = (0 if number is None else int(number) for number in match.groups())
    first, second, third = numbers
    if match[1] is not None:  # days-hours, days-hours:minutes, days-hours:minutes:seconds
        return ((24 * days + first) * 60 + second) * 60 + third
    if match[4] is not None:
        return (60 * first + second) * 60 + third
    return 60 * first + second  # minutes, minutes:seconds


def _check_slurm(what: Submission, folder: Path) -> None:
    limit = limit_s(what.time)
    if limit is not None and limit <= what.warn_s:
        told = f"--warn {what.warn_s} is not less than --time {what.time} ({limit} s)"
        raise UsageError(f"{told}: each part would be stopped as it begins; give more time, or a smaller --warn")
    if "\\" in str(folder.absolute()) or "\n" in str(folder.absolute()):
        raise UsageError(f"-o {folder}: Slurm writes no log to a path with a backslash or a line end; choose another")


def slurm_scripts(what: Submission, arguments: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the scripts of a Slurm array by name: `array.sh`, `merge.sh`, and `serve.sh` where a server is wanted."""
    check(what)
    _check_slurm(what, folder)
    scripts = {"array.sh": _array(what, arguments, folder), "merge.sh": _merge(what, folder)}
    if what.serve:
        scripts["serve.sh"] = _serve(what, folder)
    return scripts


def _place(folder: Path) -> Path:
    """Return where the scripts of a run lie, with what their jobs leave."""
    return folder.absolute() / SUBMIT_FOLDER


def _head(what: Submission, folder: Path, name: str, lines: Sequence[str], *comments: str) -> str:
    """Return how a script begins: what the scheduler reads, what people read, where it runs and what goes before."""
    output = "%A_%a" if name == "part" else f"{name}-%j"
    logs = str(_place(folder) / "logs").replace("%", "%%")  # a single % begins what Slurm fills in
    told = [f"--job-name=snellen-{name}", f"--output={_as_directive(f'{logs}/{output}.txt')}", *lines]
    told += [f"--partition={what.partition}"] if what.partition else []
    told += [f"--account={what.account}"] if what.account else []
    begin = ["#!/bin/bash", *(f"#SBATCH {line}" for line in told), "", *(f"# {line}" for line in comments)]
    return "\n".join([*begin, f"cd {shlex.quote(str(Path.cwd()))} || exit 3", *what.setup])


def _as_directive(text: str) -> str:
    """Return a text as one word of an #SBATCH line, which Slurm reads by rules of its own."""
    return '"' + text.replace('"', r"\"") + '"' if re.search(r"[\s\"'#]", text) else text


def _resources(what: Submission) -> list[str]:
    return [
        *([f"--gpus={what.gpus}"] if what.gpus else []),
        *([f"--cpus-per-task={what.cpus}"] if what.cpus else []),
        *([f"--mem={what.memory}"] if what.memory else []),
    ]


def _array(what: Submission, arguments: Sequence[str], folder: Path) -> str:
    numbers = ",".join(map(str, what.only)) if what.only else f"0-{what.parts - 1}"
    parallel = what.parallel or what.parts
    lines = [
        f"--array={numbers}" + (f"%{what.parallel}" if what.parallel else ""),
        f"--time={what.time}",
        "--requeue",
        "--open-mode=append",
        f"--signal=B:USR1@{what.warn_s}",
        *([] if what.serve else _resources(what)),
        *what.options,
    ]
    shared = share_limits(arguments, what.parts, parallel)
    run = " ".join(map(shlex.quote, ["run", *shared]))
    server = _wait_for_server(folder) if what.serve else ""
    at = ' --base-url "$URL" --same-model' if what.serve else ""
    comments = (
        f"Part $SLURM_ARRAY_TASK_ID of {what.parts} of one run in {folder.absolute()}",
        f"Exit 0: complete. {EXIT_AGAIN}: stopped before its end (time limit, pre-emption, server gone): requeued.",
        "Anything else: starting it again would not help. Slurm lets a requeued job rest for two minutes.",
        f"Of --rate and --max-workers each part has 1/{parallel}, of --max-cost and --max-errors N 1/{what.parts}.",
    )
    return f"""{_head(what, folder, "part", lines, *comments)}
me="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
again() {{   # COMPLETING: it was cancelled, or pre-empted, and then Slurm requeues it by itself
    [ "$(squeue -h -j $me -o %T)" = COMPLETING ] || [ "${{SLURM_RESTART_COUNT:-0}}" -ge {MOST_RESTARTS} ] ||
        scontrol requeue $me
    exit {EXIT_AGAIN}
}}
{server}
{snellen_command()} {run}{at} --shard "$SLURM_ARRAY_TASK_ID/{what.parts}" --plain & pid=$!
trap 'kill -USR1 $pid 2>/dev/null' USR1
trap 'kill -TERM $pid 2>/dev/null' TERM
rc=0
for i in 1 2 3 4 5 6 7 8; do wait $pid 2>/dev/null; r=$?; [ $r = 127 ] || rc=$r; done   # a trap ends a wait
case $rc in {EXIT_AGAIN}|138|143) again;; esac   # the others: told to end before Snellen had begun to listen
exit $rc
"""


def _merge(what: Submission, folder: Path) -> str:
    job = shlex.quote(str(_place(folder) / "server.job"))
    end = f"[ -s {job} ] && scancel $(cat {job})  # the server of these parts\n" if what.serve else ""
    same = " --same-model" if what.serve else ""
    comment = "Joins the parts when all have ended, well or not: `afterok` would wait for ever for a failed one."
    return f"""{_head(what, folder, "merge", ["--time=00:30:00"], comment)}
{end}{snellen_command()} merge{same} {shlex.quote(str(folder.absolute()))}
"""


def _serve(what: Submission, folder: Path) -> str:
    address = _place(folder) / "server.url"
    lines = ["--time=7-00:00:00", "--requeue", *_resources(what)]
    comment = "One server for all parts. Its address is written when it answers, and goes with it."
    return f"""{_head(what, folder, "serve", lines, comment)}
url={shlex.quote(str(address))}
rm -f "$url" "$url.failed"
echo "$SLURM_JOB_ID" > {shlex.quote(str(address.with_suffix(".job")))}
{what.serve} & pid=$!
trap 'rm -f "$url"; kill $pid 2>/dev/null' EXIT TERM
until (exec 3<>/dev/tcp/127.0.0.1/{what.port}) 2>/dev/null; do
    kill -0 $pid 2>/dev/null || {{ touch "$url.failed"; exit 1; }}
    sleep 2
done
echo "http://$(hostname):{what.port}/v1" > "$url.new" && mv "$url.new" "$url"
wait $pid
"""


def _wait_for_server(folder: Path) -> str:
    address = _place(folder) / "server.url"
    return f"""url={shlex.quote(str(address))}
trap again USR1
for i in $(seq 900); do   # half an hour for a large model to load
    [ ! -e "$url.failed" ] || {{ echo "the server did not start: see its log, serve-*.txt" >&2; exit 3; }}
    [ -s "$url" ] && break
    sleep 2
done
URL=$(cat "$url" 2>/dev/null)
[ -n "$URL" ] || {{ echo "no server came up within half an hour" >&2; again; }}
"""


def submit_commands(folder: Path, scripts: Mapping[str, str]) -> list[str]:
    """Return what submits written scripts, line by line, for a shell."""
    path = {name: shlex.quote(str(folder / SUBMIT_FOLDER / name)) for name in scripts}
    lines = [f"server=$(sbatch --parsable {path['serve.sh']})"] if "serve.sh" in scripts else []
    array = f"id=$(sbatch --parsable {path['array.sh']})"
    return [*lines, array, f"sbatch --dependency=afterany:$id {path['merge.sh']}"]


def write_scripts(folder: Path, scripts: Mapping[str, str]) -> list[Path]:
    """Write scripts below a run's folder, each whole or not at all, and return their paths."""
    place = folder / SUBMIT_FOLDER
    (place / "logs").mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        with atomic_file(place / name) as file:
            file.write(text.encode())
    return [place / name for name in scripts]


def submit(commands: Sequence[str]) -> str:
    """Run the commands that submit, in one shell: all of them, or none stays; return what the scheduler said."""
    undo = "trap '[ -z \"$server$id\" ] || scancel $server $id' ERR"
    script = "\n".join([undo, *commands, "echo $id"])
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise EnvironmentProblem(f"the scheduler took nothing: {said or f'exit {done.returncode}'}")
    return done.stdout.strip()


def apply_manifest(manifest: str) -> str:
    """Hand a manifest to kubectl; return what it said."""
    try:
        done = subprocess.run(
            ["kubectl", "apply", "-f", "-"],  # noqa: S607 - whichever the site has
            input=manifest,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise EnvironmentProblem("kubectl is not installed here: save the manifest and apply it elsewhere") from None
    if done.returncode:
        raise EnvironmentProblem(f"kubectl took nothing: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def kubernetes_manifest(what: Submission, arguments: Sequence[str], folder: Path) -> str:
    """Return an indexed Job as YAML; the folder of the run lies in a volume that all pods may write."""
    check(what)
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "run"
    if "\n" in str(folder):
        raise UsageError(f"-o {folder}: a path with a line end stands in no manifest; choose another")
    if not DNS_NAME.fullmatch(name):
        raise UsageError(f"-o {folder}: its name makes no name for a Job; use letters, digits and hyphens")
    if not folder.is_relative_to(what.mount):
        raise UsageError(f"-o {folder} is not below --mount {what.mount}: what pods write there goes with them")
    parallel = what.parallel or what.parts
    run = ["snellen", "run", *share_limits(arguments, what.parts, parallel), "--shard", f"env/{what.parts}", "--plain"]
    limits = {"nvidia.com/gpu": what.gpus, "cpu": what.cpus and str(what.cpus), "memory": what.memory}
    wanted = {key: value for key, value in limits.items() if value}
    resources = "".join(f"\n              {key}: {_quoted(value)}" for key, value in wanted.items())
    return MANIFEST.format(
        name=f"snellen-{name}",
        parts=what.parts,
        parallel=parallel,
        restarts=MOST_RESTARTS,
        again=EXIT_AGAIN,
        image=_quoted(what.image),
        claim=_quoted(what.claim),
        mount=_quoted(what.mount),
        command="".join(f"\n            - {_quoted(word)}" for word in run),
        resources=f"\n          resources:\n            limits:{resources}" if resources else "",
        merge=" ".join(map(shlex.quote, ["snellen", "merge", str(folder)])),
    )


def _quoted(text: Any) -> str:
    """Return a text as YAML takes it whatever it holds: a JSON text is one."""
    return msgspec.json.encode(str(text)).decode()


MANIFEST = """\
# One run in {parts} parts; each pod asks its own. A pod that exits {again} stopped before its end and is started again.
# When the Job has ended: {merge}
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {parts}
  parallelism: {parallel}
  backoffLimitPerIndex: {restarts}
  maxFailedIndexes: {parts}
  podReplacementPolicy: Failed        # never two pods of one index at once
  podFailurePolicy:
    rules:
      - action: Ignore                # pre-empted, drained, lost with its node: not counted
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      - action: FailIndex             # a wrong flag, a broken environment: again would not help
        onExitCodes:
          containerName: part
          operator: In
          values: [2, 3]
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 120
      containers:
        - name: part
          image: {image}
          command:{command}{resources}
          volumeMounts:
            - name: shared
              mountPath: {mount}
      volumes:
        - name: shared
          persistentVolumeClaim:
            claimName: {claim}          # ReadWriteMany
"""
