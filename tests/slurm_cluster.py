"""A real Slurm on this machine, of Debian's packages: one controller, four nodes, on loopback, ended by process ids."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import CEILING_S, wait_until

NEEDED = ("slurmctld", "slurmd", "sbatch", "munged")
NODES = (1, 2, 3, 4)
LOOK_S = 0.5
REST_S = 6
"""What Slurm revokes of a requeued job must have expired before it starts again."""
CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/run/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
SlurmctldPidFile={home}/run/slurmctld.pid
SlurmdPidFile={home}/run/slurmd-%n.pid
SlurmctldLogFile={home}/log/slurmctld.log
SlurmdLogFile={home}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
SlurmdTimeout=9
KillWait=6
ReturnToService=2
NodeName=n[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[16821-16824] CPUs=2 RealMemory=2000
PartitionName=low Nodes=n[1-4] Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=n[1-4] PriorityTier=10 PreemptMode=OFF
"""


def can_run() -> bool:
    """Tell whether Slurm is installed and may be started."""
    return os.geteuid() == 0 and all(map(shutil.which, NEEDED))


class Cluster:
    """A running cluster."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._seen: dict[str, float] = {}
        self.environment = os.environ | {"SLURM_CONF": str(home / "etc" / "slurm.conf"), "USER": "root"}

    def run(self, *arguments: object, check: bool = True) -> str:
        """Run a command of Slurm's, or one that calls them, and return what it printed."""
        done = subprocess.run(
            list(map(str, arguments)),
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=CEILING_S,
            check=False,
        )
        assert not check or done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def pid(self, name: str) -> int:
        """Return the process id of a daemon by the name of its pid file; 0 where there is none."""
        path = self.home / "run" / f"{name}.pid"
        return int(path.read_text() or 0) if path.exists() else 0

    def jobs(self, states: str = "all") -> dict[str, tuple[str, str]]:
        """Return the jobs by number (5_3): state and node."""
        lines = self.run("squeue", "-h", "-r", "-t", states, "-o", "%i %T %N").splitlines()
        return {number: (state, node) for number, state, node in (f"{line} -".split()[:3] for line in lines)}

    def unfinished(self) -> list[str]:
        """Return the jobs that run or wait."""
        done = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
        return [number for number, (state, _) in self.jobs().items() if state not in done]

    def start_waiting(self) -> None:
        """Start requeued jobs after some seconds: Slurm would let them rest for two minutes."""
        resting = self.run("squeue", "-h", "-r", "-t", "PENDING", "-o", "%i %r").splitlines()
        rested = [line.split()[0] for line in resting if line.endswith("BeginTime")]
        now = time.monotonic()
        self._seen = {number: self._seen.get(number, now) for number in rested}
        for number in [number for number, seen in self._seen.items() if now - seen > REST_S]:
            self.run("scontrol", "update", f"JobId={number}", "StartTime=now", check=False)
            del self._seen[number]

    def finish(self, what: str) -> None:
        """Wait until no job runs or waits."""

        def ended() -> bool:
            time.sleep(LOOK_S)  # each look asks the controller
            self.start_waiting()
            return not self.unfinished()

        wait_until(ended, what, 4 * CEILING_S)

    def preempted(self) -> int:
        """Return how many jobs had to make room for others so far."""
        log = (self.home / "log" / "slurmctld.log").read_text()
        return log.count("has been requeued to reclaim resources") + log.count("has been killed to reclaim")


@contextmanager
def cluster(home: Path) -> Iterator[Cluster]:
    """Start Slurm in a folder and end it after the block."""
    for name in ("etc", "run", "log", "state", *(f"spool/n{node}" for node in NODES)):
        (home / name).mkdir(parents=True)
    home.chmod(0o755)
    key = home / "etc" / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    conf = home / "etc" / "slurm.conf"
    conf.write_text(CONF.format(home=home))
    made = Cluster(home)
    files = {"key-file": key, "socket": "munge.socket", "pid-file": "munged.pid", "seed-file": "seed"}
    told = [f"--{name}={home / 'run' / value if isinstance(value, str) else value}" for name, value in files.items()]
    daemons = ["slurmctld", *(f"slurmd-n{node}" for node in NODES), "munged"]
    try:
        made.run("munged", *told, f"--log-file={home / 'log' / 'munged.log'}", "--force")
        made.run("slurmctld", "-f", conf)
        for node in NODES:
            made.run("slurmd", "-f", conf, "-N", f"n{node}")
        wait_until(
            lambda: made.run("sinfo", "-h", "-o", "%t %D", check=False).split()[:2] == ["idle", "4"], "four nodes"
        )
        yield made
    finally:
        made.run("scancel", "--user=root", check=False)
        for name in daemons:
            with suppress(ProcessLookupError):
                if made.pid(name):
                    os.kill(made.pid(name), signal.SIGTERM)
