"""Everything that can die dies at random moments, again and again, while pods with claims come and go: the invariants hold throughout, and
in the end all that can run runs and nothing has leaked.
"""

from __future__ import annotations

import http.client
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from apiserver.e2e.writing import Connection
from faults.breaking import Faults
from faults.cluster import Cluster
from faults.invariants import broken_promises, unsettled
from faults.snapshot import PATHS, Object, Snapshot, take

IS_LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
ROUNDS: Final = int(os.environ.get("FAULTS_ROUNDS", "0")) or (500 if IS_LONG else 10)
SEED: Final = int(os.environ.get("FAULTS_SEED", "0")) or (random.getrandbits(32) if IS_LONG else 4)
STEPS: Final = 16
PATIENCE_S: Final = 90.0
"""How long everything may take to come to rest; a node that was gone has a quarantine of 40 seconds behind it."""
_PAUSE_S: Final = 0.3
_LONGEST_STEP_PAUSE_S: Final = 0.15


class Watchman:
    """Looks at the cluster again and again, while it can be reached, and writes down what may never be seen."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._slices: list[Object] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seen: dict[str, None] = {}
        self.looks = 0

    @contextmanager
    def on_duty(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ends.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._ends.is_set():
            try:
                self._look_until_it_dies()
            except (OSError, http.client.HTTPException):
                self._ends.wait(_PAUSE_S)

    def _look_until_it_dies(self) -> None:
        with closing(self._cluster.connect()) as connection:
            self._look(connection)

    def _look(self, connection: Connection) -> None:
        # What hardware offers does not change, and slices of a deleted node still say what its devices are.
        known = {item["metadata"]["name"]: item for item in self._slices}
        published = take(connection, ("slices",)).slices
        known.update((item["metadata"]["name"], item) for item in published)
        self._slices = list(known.values())
        while not self._ends.wait(_PAUSE_S):
            now = take(connection, ("pods", "claims", "nodes"))
            moment = Snapshot(now.pods, now.claims, now.nodes, self._slices)
            self.seen.update(dict.fromkeys(broken_promises(moment)))
            self.looks += 1


def come_to_rest(cluster: Cluster, faults: Faults) -> list[str]:
    """Wait until the cluster is as it should be. What is in the way, if it does not get there in time."""
    deadline = time.monotonic() + PATIENCE_S
    wrong: list[str] = ["nobody has looked"]
    calm = 0
    with closing(cluster.connect()) as connection:
        while calm < 2 and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            now = take(connection, tuple(PATHS))
            wrong = [*broken_promises(now), *unsettled(now)]
            calm = 0 if wrong else calm + 1
    return wrong or faults.load.lost(now)


def test_faults_break_nothing(tmp_path: Path) -> None:
    """After each round of faults the cluster comes to rest with everything running, nothing lost and nothing leaked."""
    print(f"FAULTS_SEED={SEED}")
    chance = random.Random(SEED)
    cluster = Cluster(tmp_path)
    faults = Faults(cluster, chance)
    cluster.start(scheduler_beside=chance.random() < 0.5)
    watchman = Watchman(cluster)
    try:
        faults.load.prepare()
        with watchman.on_duty():
            for number in range(ROUNDS):
                story = run_round(faults, chance)
                wrong = come_to_rest(cluster, faults)
                report = "\n".join([f"seed {SEED}, round {number}", *story, "", *wrong])
                assert not wrong, report
                assert not watchman.seen, f"{report}\n{list(watchman.seen)}"
                faults.load.evictions = False
        assert not cluster.complaints(), cluster.complaints()
    finally:
        faults.end()
    print(f"{ROUNDS} rounds, {faults.counts}, {watchman.looks} looks in between")
    assert watchman.looks > ROUNDS


def run_round(faults: Faults, chance: random.Random) -> list[str]:
    """Some steps of work and faults; the story of them."""
    story = []
    for _ in range(STEPS):
        act = chance.choices((faults.load.create, faults.load.delete, faults.strike), (6, 3, 3))[0]
        story.append(act())
        time.sleep(chance.uniform(0.0, _LONGEST_STEP_PAUSE_S))
    faults.mend()
    return story
