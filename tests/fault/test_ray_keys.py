"""A key in a Ray cluster: not in its lists of jobs, actors and tasks, not in logs of workers, not in their environment or command lines."""

from __future__ import annotations

import importlib.util
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_key_canaries import CANARY, FORMS, Parrot, leaks

from executor_runs import descendants, finish_run, start_run, write_questions
from figures import note_figure
from waiting import stored_trials, wait_until

pytestmark = pytest.mark.slow


def shown(content: str) -> bool:
    return any(form in content for form in FORMS)


def processes_that_show(raylet: int) -> list[str]:
    """Return the processes below a raylet that have the key in their environment or their command line."""
    found = []
    for pid in descendants(raylet, ""):
        for name in ("environ", "cmdline"):
            try:
                content = Path(f"/proc/{pid}/{name}").read_bytes().decode("latin-1")
            except OSError:
                continue
            found += [f"{pid} {name}"] if shown(content) else []
    return found


def test_a_key_is_in_no_list_log_or_process_of_a_ray_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with ThreadingHTTPServer(("127.0.0.1", 0), Parrot) as parrot:
        parrot.asked = 0  # type: ignore[attr-defined]
        threading.Thread(target=parrot.serve_forever, daemon=True).start()
        look_for_the_key(parrot.server_port, tmp_path)
        parrot.shutdown()


def look_for_the_key(port: int, tmp_path: Path) -> None:
    from ray_nodes import ray_nodes

    told: list[Any] = ["--model", "openai/mock", "--base-url", f"http://127.0.0.1:{port}/v1"]
    data, folder = write_questions(tmp_path, 40), tmp_path / "run"
    has_lists = importlib.util.find_spec("aiohttp_cors") is not None  # of ray[default]: Ray lists nothing without it
    with ray_nodes(1, include_dashboard=has_lists) as nodes:
        from ray.util import state

        import ray

        told += ["--executor", "ray", "--ray-address", nodes.address, "--replicas", 1, "--max-retries", "1"]
        process = start_run(
            [data, *told, "--no-cache", "-o", folder, "--max-workers", "2"], OPENAI_API_KEY=CANARY, RAY_DEDUP_LOGS="0"
        )
        wait_until(lambda: stored_trials(folder) > 3 or process.poll() is not None, "some replies")
        raylet = nodes.cluster.head_node.all_processes["raylet"][0].process.pid
        assert descendants(raylet, ""), "there are processes to look at"
        seen = processes_that_show(raylet)
        ray.init(nodes.address, logging_level="error", log_to_driver=False)
        lists = [state.list_jobs, state.list_actors, state.list_tasks, state.list_workers, state.list_runtime_envs]
        lists = lists if has_lists else []
        listed = [repr(each(detail=True)) for each in lists]
        code, out, err = finish_run(process)
        listed += [repr(each(detail=True)) for each in lists]
        session = Path(nodes.cluster.head_node.get_session_dir_path())
        logs = [path for path in session.rglob("*") if path.is_file() and path.stat().st_size < 2**26]
        in_logs = [str(path) for path in logs if shown(path.read_bytes().decode("latin-1"))]
        ray.shutdown()
    assert code in (0, 1, 3) and len(logs) > 3 and folder.is_dir(), err[-2000:]
    assert not seen and not in_logs and not any(map(shown, listed)) and not shown(out + err)
    assert not leaks(tmp_path)
    note_figure(
        "fault",
        "a key in a Ray cluster, and a server that quotes it",
        f"{len(logs)} files of the session, {len(lists)} lists (jobs, actors, tasks, workers, environments), processes: 0 hits",
    )
