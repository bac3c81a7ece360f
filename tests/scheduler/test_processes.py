"""Schedulers in processes of their own, on one server."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.e2e.driving import DRAYMAN, running
from apiserver.e2e.writing import Connection
from drayman.cli.scheduler import _identity
from faults.invariants import broken_promises
from faults.snapshot import PATHS, Snapshot, take
from patience import PATIENCE_S

POD = "/api/v1/namespaces/default/pods"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
_POLL_S = 0.1


@contextmanager
def scheduling(kubeconfig: Path, log: Path, *names: str) -> Iterator[subprocess.Popen[bytes]]:
    words = [word for name in names for word in ("--scheduler-name", name)]
    command = [*DRAYMAN, "scheduler", "--kubeconfig", str(kubeconfig), *words]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output, stdout=output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def says(log: Path, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while words not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(_POLL_S)


def create(connection: Connection, path: str, value: dict[str, Any]) -> None:
    status, answer = connection.request("POST", path, value)
    assert status == 201, answer


def pod(name: str, scheduler: str, *templates: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/image:1"}
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    spec = {"schedulerName": scheduler, "containers": [container], "resourceClaims": claims}
    return {"metadata": {"name": name}, "spec": spec}


def all_bound(connection: Connection) -> Snapshot:
    """The cluster once all of its pods have nodes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = take(connection, tuple(PATHS))
        waiting = [p["metadata"]["name"] for p in now.pods if not p["spec"].get("nodeName")]
        if not waiting:
            return now
        assert time.monotonic() < deadline, waiting
        time.sleep(_POLL_S)


@pytest.mark.parametrize("guard", ["--device-guard", "--no-device-guard"])
def test_two_schedulers_give_each_device_away_once(tmp_path: Path, guard: str) -> None:
    """As many pods as GPUs, for schedulers of two names: all run, and no device has two holders, with a guard or without."""
    config = tmp_path / "config"
    options = ("--ephemeral", "--port", "0", "--no-scheduler", "--profile", "dgx-h100=2", guard)
    with running(config, *options), closing(Connection(config)) as connection:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        create(connection, TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})
        with (
            scheduling(config, tmp_path / "one.log", "one"),
            scheduling(config, tmp_path / "two.log", "two"),
        ):
            for name in ("one", "two"):
                says(tmp_path / f"{name}.log", "scheduling pods")
            for number in range(16):
                name = ("one", "two")[number % 2]
                create(connection, POD, pod(f"{name}-{number}", name, "gpu"))
            now = all_bound(connection)
        assert broken_promises(now) == []


def test_of_two_schedulers_of_one_name_the_second_stands_by(tmp_path: Path) -> None:
    """It says for whom, serves the other name meanwhile, and both when the first is stopped."""
    config = tmp_path / "config"
    options = ("--ephemeral", "--port", "0", "--no-scheduler", "--profile", "cpu=1")
    with running(config, *options), closing(Connection(config)) as connection:
        first, second = tmp_path / "first.log", tmp_path / "second.log"
        with scheduling(config, first, "one") as leader:
            create(connection, POD, pod("a", "one"))
            all_bound(connection)
            with scheduling(config, second, "two", "one"):
                says(second, "standing by: ")
                assert f"_{leader.pid}_" in second.read_text()
                create(connection, POD, pod("b", "two"))
                all_bound(connection)
                leader.send_signal(signal.SIGTERM)
                says(second, "at work for pods of one")
                create(connection, POD, pod("c", "one"))
                all_bound(connection)


def test_a_scheduler_stands_by_for_the_one_inside_the_server(tmp_path: Path) -> None:
    """They serve a name in common, so only one of them places its pods."""
    config = tmp_path / "config"
    with running(config, "--ephemeral", "--port", "0", "--profile", "cpu=1"):
        log = tmp_path / "log"
        with scheduling(config, log, "drayman"), closing(Connection(config)) as connection:
            says(log, "standing by: drayman-up holds the lease kube-system/drayman-scheduler")
            create(connection, POD, pod("p", "drayman"))
            all_bound(connection)


def test_schedulers_in_containers_are_distinguished() -> None:
    """Host name and process id may be the same for two of them."""
    assert _identity() != _identity()


def test_a_name_that_no_lease_can_have_is_refused(tmp_path: Path) -> None:
    """At once, and in one sentence."""
    done = subprocess.run(
        [*DRAYMAN, "scheduler", "--scheduler-name", "My Scheduler"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be part of the name of a lease" in done.stderr
