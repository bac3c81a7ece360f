"""Everything that can go wrong with a machine goes wrong at random moments, again and again, while pods with claims come and go, two
schedulers compete for the same devices, and half of the work waits in queues whose quota changes: the invariants hold throughout, what was
acknowledged stays, and in the end all that can run runs and nothing has leaked. All of it is judged by what the API shows; last of all, an
emptied cluster has everything to give.

The seed is printed; FAULTS_SEED and FAULTS_ROUNDS set seed and length of a run. The same seed makes the same choices, but processes
keep their own time, so that a run is repeated only as far as the moments of the faults go.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from faults.breaking import Faults
from faults.cluster import Cluster
from faults.invariants import broken_promises, unsettled
from faults.promises import Promises
from faults.snapshot import PATHS, take
from faults.watching import Watchman
from patience import PATIENCE_S

IS_LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
ROUNDS: Final = int(os.environ.get("FAULTS_ROUNDS") or (500 if IS_LONG else 8))
SEED: Final = int(os.environ.get("FAULTS_SEED") or (random.getrandbits(32) if IS_LONG else 4))
LOST_NODES: Final = 0.02 if IS_LONG else 0.0
LONG_FREEZES: Final = 0.01 if IS_LONG else 0.0
"""In how many rounds a node is lost, or a process frozen, for long: they take a minute each."""
STEPS: Final = 20
STRIKES: Final = 4
"""Steps of a round, and how many of them are faults."""
_PAUSE_S: Final = 0.3
_LONGEST_STEP_PAUSE_S: Final = 0.15


def come_to_rest(
    cluster: Cluster, faults: Faults, watchman: Watchman, promises: Promises, gaps: int
) -> list[str]:
    """Wait until the cluster is as it should be. What is in the way, if it does not get there in time."""
    deadline = time.monotonic() + PATIENCE_S
    wrong: list[str] = ["nobody has looked"]
    calm = 0
    with closing(cluster.connect()) as connection:
        while calm < 2 and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            cluster.supervise()
            now = take(connection, tuple(PATHS))
            wrong = [*broken_promises(now), *unsettled(now)]
            calm = 0 if wrong else calm + 1
        wrong += promises.broken(connection)
    wrong += watchman.seen_until(now)
    wrong += faults.load.lost(now, watchman.deleted, has_gap=watchman.gaps > gaps)
    return wrong + cluster.complaints()


def test_faults_break_nothing(tmp_path: Path) -> None:
    """After each round of faults the cluster comes to rest with everything running, nothing lost and nothing leaked."""
    print(f"FAULTS_SEED={SEED}")
    rng = random.Random(SEED)
    cluster = Cluster(tmp_path)
    print(cluster.disk.how)
    faults = Faults(cluster, rng)
    watchman = Watchman(cluster)
    promises = Promises(cluster, random.Random(SEED))
    started = time.monotonic()
    try:
        faults.begin()
        faults.load.prepare()
        with watchman.on_duty(), promises.being_made():
            for number in range(ROUNDS):
                print(f"round {number} after {time.monotonic() - started:.0f} s", flush=True)
                gaps = watchman.gaps
                story: list[str] = []
                try:
                    run_round(faults, rng, story)
                    wrong = come_to_rest(cluster, faults, watchman, promises, gaps)
                except BaseException:
                    print("\n".join([f"seed {SEED}, round {number}", *story]))
                    raise
                report = "\n".join([f"seed {SEED}, round {number}", *story, "", *wrong])
                assert not wrong, report
            faults.load.delete_everything()
            assert not come_to_rest(cluster, faults, watchman, promises, watchman.gaps)
            assert not faults.load.kept_for_nobody()
    finally:
        faults.end()
        took = (time.monotonic() - started) / ROUNDS
        print(f"{ROUNDS} rounds of {took:.1f} s, {faults.counts}, {faults.refusals} refusals")
        print(
            f"{promises.acknowledged} writes acknowledged, {promises.refused} refused, compared {promises.checks} times;"
            f" {watchman.revisions} revisions seen, {watchman.gaps} gaps;"
            f" quota was given {watchman.quota.gains} times, taken {dict(watchman.quota.evictions)}"
        )
    assert watchman.revisions > ROUNDS * STEPS
    assert watchman.quota.gains > ROUNDS // 2
    assert not faults.missing() or ROUNDS < 8


def run_round(faults: Faults, rng: random.Random, story: list[str]) -> None:
    """Some steps of work and faults, told in `story`."""
    load = faults.load
    kinds = (load.create, load.delete, load.queues.change)
    work = rng.choices(kinds, (4, 2, 1), k=STEPS - STRIKES)
    acts = [*work, *[faults.strike] * STRIKES]
    rng.shuffle(acts)
    for act in acts:
        story.append(act())
        time.sleep(rng.uniform(0.0, _LONGEST_STEP_PAUSE_S))
    if rng.random() < LOST_NODES:
        story.append(faults.lose_node())
    if rng.random() < LONG_FREEZES:
        story.append(faults.freeze_for_long())
    faults.mend()
