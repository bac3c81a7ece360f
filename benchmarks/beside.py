"""What questions cost a scheduler that is busy.

    beside.py [--kinds NAME,...] [--runs N] [--every SECONDS] [--nodes N]

A client creates pods with claims on N nodes with 8 devices each, as fast as they are placed. Meanwhile stretches of time in which nothing
else happens alternate with stretches in which a process asks one kind of question again and again, with a pause of so many seconds
between an answer and the next question. Each stretch is compared with those right before and after it, because what the machine does
besides changes more from minute to minute than a question costs.

`saved` is an explanation of a cluster in a file: it computes the same and never talks to the server, so what it costs is not the server's
doing. One JSON line per run, then one for each kind with the share of the rate that it costs; the exit status is 1 if that is more than
it may be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from drayman.cli.bench.scheduling import run
from drayman.cli.bench.serving import address_of
from drayman.cli.bench.wire import Crew
from drayman.cli.bench.workloads import Workload
from measure import report

BAR = 0.05
DEVICES = 8
NOTHING = "nothing"
STRETCH_S = 4.0
SETTLING_S = 0.5
"""At the beginning of a stretch, what was under way before comes to an end."""
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
    async with Crew(await address_of(kubeconfig)) as crew:
        measured = await run(workload, crew, Silent())
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
    """A time in which one kind of question was asked, or nothing."""

    kind: str
    begin: float
    end: float
    asked: int

    def rate(self, bound: list[float]) -> float:
        """Pods a second, once it has settled."""
        begin = self.begin + SETTLING_S
        return (bisect_left(bound, self.end) - bisect_left(bound, begin)) / (self.end - begin)


def ask(command: list[str], until: float, every_s: float) -> int:
    """Ask until that time. What is not answered by then is given up."""
    asked = 0
    while time.monotonic() < until:
        asking = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            status = asking.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            asking.kill()
            asking.wait()
            break
        if status not in (0, 1):
            raise RuntimeError(f"no answer: {' '.join(command)}")
        asked += 1
        time.sleep(min(every_s, max(until - time.monotonic(), 0)))
    return asked


def measure(kind: str, nodes: int, every_s: float) -> list[float]:
    """One run. Returns what each stretch of questions costs, compared with its neighbours."""
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
            now = NOTHING if len(stretches) % 2 == 0 else kind
            begin = time.monotonic()
            until = begin + STRETCH_S
            asked = 0 if now == NOTHING else ask(there.question(now), until, every_s)
            time.sleep(max(until - time.monotonic(), 0))
            stretches.append(Stretch(now, begin, time.monotonic(), asked))
        if client.wait() or not said:
            raise RuntimeError("the client failed")
    bound = sorted(json.loads(said[-1]))
    whole = [stretch for stretch in stretches if stretch.end < bound[-1]]
    costs = [
        1 - 2 * here.rate(bound) / (before.rate(bound) + after.rate(bound))
        for before, here, after in zip(whole, whole[1:], whole[2:], strict=False)
        if here.kind == kind
    ]
    report(
        bench="beside",
        beside=kind,
        every_s=every_s,
        nodes=nodes,
        pods=len(bound),
        rate=len(bound) / (bound[-1] - bound[0]),
        asked=sum(stretch.asked for stretch in whole),
        stretches=len(costs),
        costs=[round(each, 3) for each in costs],
    )
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="explain,plan", metavar="NAME,...")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--client", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        asyncio.run(create_pods(Path(given.client), given.nodes))
        return 0
    kinds = given.kinds.split(",")
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(given.runs):
        for kind in kinds:
            costs[kind] += measure(kind, given.nodes, given.every)
    met = True
    for kind, found in costs.items():
        mean = statistics.mean(found)
        met &= mean <= BAR
        report(
            bench="beside",
            beside=kind,
            every_s=given.every,
            nodes=given.nodes,
            stretches=len(found),
            costs=mean,
            median=statistics.median(found),
            error=statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else None,
            bar=BAR,
            met=mean <= BAR,
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
