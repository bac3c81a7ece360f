"""What questions cost a scheduler that is busy.

    beside.py [--rounds N] [--every SECONDS] [--only NAME,...]

Each round runs the same workload, pods with claims on 500 nodes, once with nothing beside it and once for each kind of question, which a
process of its own asks again and again: a pause of so many seconds lies between an answer and the next question, 0 for none. `saved` is
an explanation of a cluster in a file: it computes the same and never talks to the server, so what it costs is the machine's doing.
Rates differ by ten percent from run to run on a shared machine, so look at many rounds, and at the server's own CPU time. One JSON line
per run, then one for each kind with the share of the rate that it costs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import report

WORKLOAD = "SchedulingWithResourceClaimTemplate/5000pods_500nodes"
BAR = 0.05
NOTHING = "nothing"
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


class Cluster:
    """`drayman up`, with a pod on it that waits."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        waiting, self._planned = folder / "waiting.yaml", folder / "planned.yaml"
        waiting.write_text(_WAITING)
        self._planned.write_text(_PLANNED)
        self.saved = folder / "saved.yaml"
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
                return [*DRAYMAN, "plan", "-f", str(self._planned), "--times", "100", *where]
            case "saved":
                given = ["--snapshot", str(self.saved)]
                return [*DRAYMAN, "explain", "pod/waits", "-n", "default", *given]
        raise ValueError(f"no such question: {kind}")

    def cpu_s(self) -> float:
        """The seconds of CPU that the server has used."""
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def work(self) -> float:
        """Pods a second of the workload."""
        where = ["--backend", "kubeconfig", "--kubeconfig", str(self.kubeconfig)]
        done = subprocess.run(
            [*DRAYMAN, "bench", "schedule", "--workload", WORKLOAD, "--json", *where],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return float(json.loads(done.stdout.splitlines()[-1])["average"])

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


def run(kind: str, every_s: float, saved: bytes) -> dict[str, float]:
    """The workload once, beside questions of a kind."""
    with cluster() as there:
        there.saved.write_bytes(saved)
        over = threading.Event()
        asked: list[int] = []

        def ask() -> None:
            while not over.is_set():
                done = subprocess.run(there.question(kind), capture_output=True, check=False)
                # 0 and 1 are answers; while there are no nodes yet, a plan may have none.
                asked.append(done.returncode)
                over.wait(every_s)

        asking = threading.Thread(target=ask)
        if kind != NOTHING:
            asking.start()
        try:
            rate = there.work()
        finally:
            over.set()
            if kind != NOTHING:
                asking.join()
        answered = sum(code in (0, 1) for code in asked)
        figures = {"rate": rate, "server_s": there.cpu_s(), "asked": len(asked)}
        report(bench="beside", beside=kind, every_s=every_s, answered=answered, **figures)
        return figures


def save() -> bytes:
    """The cluster after the workload."""
    with cluster() as there:
        there.work()
        where = ["--kubeconfig", str(there.kubeconfig)]
        return subprocess.run(
            [*DRAYMAN, "snapshot", *where], check=True, stdout=subprocess.PIPE
        ).stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--only", default="explain,plan", metavar="NAME,...")
    given = parser.parse_args()
    kinds = [NOTHING, *given.only.split(",")]
    saved = save() if "saved" in kinds else b""
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for number in range(given.rounds):
        # In turn each is the first, so that what the machine does over time hits all alike.
        turn = number % len(kinds)
        for kind in kinds[turn:] + kinds[:turn]:
            runs[kind].append(run(kind, given.every, saved))
    means = {
        kind: {name: statistics.mean(each[name] for each in found) for name in found[0]}
        for kind, found in runs.items()
    }
    met = True
    alone = means[NOTHING]
    for kind in kinds[1:]:
        costs = 1 - means[kind]["rate"] / alone["rate"]
        met &= costs <= BAR or kind == "saved"
        report(
            bench="beside",
            beside=kind,
            every_s=given.every,
            rounds=given.rounds,
            rate=means[kind]["rate"],
            rate_alone=alone["rate"],
            costs=costs,
            server_costs=means[kind]["server_s"] / alone["server_s"] - 1,
            asked=means[kind]["asked"],
            bar=BAR,
            met=costs <= BAR,
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
