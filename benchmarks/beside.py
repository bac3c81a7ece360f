"""What questions cost a scheduler that is busy.

    beside.py [--kinds NAME,...] [--runs N] [--every SECONDS] [--nodes N]

A client creates pods with claims on N nodes with 8 devices each, as fast as they are placed. Meanwhile stretches of time in which nothing
else happens alternate with stretches in which one question is asked. Each of those is compared with the ones right before and after it,
because what the machine does besides changes more from minute to minute than a question costs.

What is found is the time that a question costs the scheduler: how much longer the same pods take. `once` is its share of the whole run,
`costs` where somebody asks every so many seconds, `watched` where they ask again two seconds after each answer, as watch(1) does, and
`nonstop` where the next question comes as soon as one is answered. `saved` is an explanation of a cluster
in a file: it computes the same and never talks to the server, so what it costs is not the server's doing.

One JSON line per run, then one for each kind; the exit status is 1 if it costs more than it may.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from drayman.cli.bench.scheduling import run
from drayman.cli.bench.serving import address_of
from drayman.cli.bench.wire import ConnectionPool
from drayman.cli.bench.workloads import Workload
from drayman.cluster import HttpClient
from drayman.cluster.kube.locating import find_connection
from measure import report

BAR = 0.05
EVERY_S = 10.0
"""Also `explain --watch` reads a cluster of this size about so often while it changes."""
WATCH_PAUSE_S = 2.0
DEVICES = 8
STRETCH_S = 4.0
START_S = 30.0
DRAYMAN = [sys.executable, "-m", "drayman"]

_WAITING = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: big}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: test-class, count: 32}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: big}]
  containers: [{name: main, image: "example.com/image:1", resources: {claims: [{name: gpu}]}}]
"""
_PLANNED = """\
apiVersion: v1
kind: Pod
metadata: {name: planned}
spec: {containers: [{name: main, image: "example.com/image:1"}]}
"""


class Silent:
    """A client that is watched by nobody."""

    def begin(self, what: str, total: int) -> None:
        if what == "measuring":
            print(what, flush=True)

    def advance(self) -> None:
        pass


async def create_pods(kubeconfig: Path, nodes: int) -> None:
    """The client: say when the measurement begins, and afterwards when each pod was bound."""
    capacity = nodes * DEVICES
    workload = Workload("beside", nodes, DEVICES, pods=capacity * 3 // 4, pods_before=capacity // 8)
    connection = find_connection(kubeconfig)
    async with (
        ConnectionPool(await address_of(connection)) as connections,
        HttpClient(connection) as client,
    ):
        measured = await run(workload, connections, client, Silent())
    print(json.dumps(measured.bound), flush=True)


class Cluster:
    """`drayman up`, with a pod on it that waits."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        waiting, self._planned = folder / "waiting.yaml", folder / "planned.yaml"
        waiting.write_text(_WAITING)
        self._planned.write_text(_PLANNED)
        self._saved = folder / "saved.yaml"
        data = ["--data-dir", str(folder / "data"), "--port", "0"]
        self._server = subprocess.Popen(
            [*DRAYMAN, "up", *data, "--kubeconfig", str(self.kubeconfig)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_S
        while not self.kubeconfig.exists():
            if time.monotonic() > deadline or self._server.poll() is not None:
                raise RuntimeError("`drayman up` does not start")
            time.sleep(0.1)
        subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "apply", "-f", str(waiting)],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def question(self, kind: str) -> list[str]:
        """The command of a kind of question."""
        where = ["--kubeconfig", str(self.kubeconfig)]
        match kind:
            case "explain":
                return [*DRAYMAN, "explain", "pod/waits", "-n", "default", *where]
            case "plan":
                return [*DRAYMAN, "plan", "-f", str(self._planned), "--times", "1000", *where]
            case "saved":
                saved = ["--snapshot", str(self._saved)]
                return [*DRAYMAN, "explain", "pod/waits", "-n", "default", *saved]
        raise ValueError(f"no such question: {kind}")

    def save(self) -> None:
        with self._saved.open("wb") as out:
            command = [*DRAYMAN, "snapshot", "--kubeconfig", str(self.kubeconfig)]
            subprocess.run(command, check=True, stdout=out)

    def stop(self) -> None:
        self._server.terminate()
        self._server.wait()


@contextmanager
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as folder:
        made = Cluster(Path(folder))
        try:
            yield made
        finally:
            made.stop()


class Stretch(NamedTuple):
    """A time in which a question was asked, or nothing happened."""

    begin: float
    end: float
    answered_s: float | None = None
    """How long the answer took, where something was asked."""

    @property
    def length(self) -> float:
        return self.end - self.begin

    def rate(self, bound: list[float]) -> float:
        """Pods a second."""
        return (bisect_left(bound, self.end) - bisect_left(bound, self.begin)) / self.length


class Question(NamedTuple):
    """What came of one."""

    answered_s: float
    lost_s: float
    """So much less time would have been enough for the pods of its stretch."""
    run_s: float
    """How long it took to place all the pods of the run."""


def stretch(command: list[str] | None) -> Stretch:
    """Some time, with a question at its beginning. It does not end before the answer."""
    begin = time.monotonic()
    answered_s = None
    if command is not None:
        status = subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if status not in (0, 1):
            raise RuntimeError(f"no answer: {' '.join(command)}")
        answered_s = time.monotonic() - begin
    time.sleep(max(begin + STRETCH_S - time.monotonic(), 0))
    return Stretch(begin, time.monotonic(), answered_s)


def measure(kind: str, nodes: int) -> list[Question]:
    """One run."""
    with cluster() as there:
        client = subprocess.Popen(
            [sys.executable, __file__, "--client", str(there.kubeconfig), "--nodes", str(nodes)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout is not None
        client.stdout.readline()
        if kind == "saved":
            there.save()
        said: list[str] = []
        listening = threading.Thread(target=lambda: said.extend(client.stdout or ()))
        listening.start()
        stretches: list[Stretch] = []
        while listening.is_alive():
            stretches.append(stretch(there.question(kind) if len(stretches) % 2 else None))
        if client.wait() or not said:
            raise RuntimeError("the client failed")
    bound = sorted(json.loads(said[-1]))
    whole = [each for each in stretches if each.end < bound[-1]]
    run_s = bound[-1] - bound[0]
    questions = [
        Question(
            here.answered_s,
            here.length * (1 - 2 * here.rate(bound) / (before.rate(bound) + after.rate(bound))),
            run_s,
        )
        for before, here, after in zip(whole, whole[1:], whole[2:], strict=False)
        if here.answered_s is not None
    ]
    report(
        bench="beside",
        beside=kind,
        nodes=nodes,
        pods=len(bound),
        rate=len(bound) / run_s,
        answered_s=[round(each.answered_s, 2) for each in questions],
        lost_s=[round(each.lost_s, 3) for each in questions],
    )
    return questions


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="explain,plan", metavar="NAME,...")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--client", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        asyncio.run(create_pods(Path(given.client), given.nodes))
        return 0
    asked: dict[str, list[Question]] = {kind: [] for kind in given.kinds.split(",")}
    for _ in range(given.runs):
        for kind, questions in asked.items():
            questions += measure(kind, given.nodes)
    met = True
    for kind, questions in asked.items():
        if not questions:
            raise SystemExit("all pods were placed before a question was answered: more nodes")
        lost = [each.lost_s for each in questions]
        lost_s, answered_s = mean(lost), mean(each.answered_s for each in questions)
        costs = lost_s / max(given.every, answered_s)
        met &= costs <= BAR
        report(
            bench="beside",
            beside=kind,
            nodes=given.nodes,
            questions=len(questions),
            answered_s=answered_s,
            lost_s=lost_s,
            error_s=stdev(lost) / len(lost) ** 0.5 if len(lost) > 1 else None,
            once=lost_s / mean(each.run_s for each in questions),
            every_s=given.every,
            costs=costs,
            watched=lost_s / (answered_s + WATCH_PAUSE_S),
            nonstop=lost_s / answered_s,
            bar=BAR,
            met=costs <= BAR,
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
