"""When something that waits will start, and what that rests on."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.explain.answer import Explanation
from drayman.explain.pod import PodHeadlines, explain_pod
from drayman.explain.promised import reserved_in
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from simulate.cluster import DRIVER, NOW, claim, cluster, pod

RUNTIME = "drayman.dev/runtime"
GANG = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}


def running(name: str, node: str, runtime: str = "", image: str = "") -> tuple[Pod, ResourceClaim]:
    """A pod that has the first device of a node, and began ten minutes ago."""
    metadata = {"annotations": {RUNTIME: runtime} if runtime else {}}
    status = {"phase": "Running", "startTime": timestamp_at(NOW - 600)}
    containers = [{"name": "main", "image": image}]
    there = pod(
        name,
        claim=name,
        metadata=metadata,
        status=status,
        nodeName=node,
        restartPolicy="Never",
        containers=containers,
    )
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": "gpu-0"}
    user = {"resource": "pods", "name": name, "uid": name}
    held = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    return there, claim(name, 1, status=held)


def ended(name: str, seconds: float, image: str) -> Pod:
    times = {
        "startedAt": timestamp_at(NOW - 9000),
        "finishedAt": timestamp_at(NOW - 9000 + seconds),
    }
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "startTime": timestamp_at(NOW - 9000),
        "containerStatuses": [{"name": "main", "state": {"terminated": times}}],
    }
    containers = [{"name": "main", "image": image}]
    return pod(name, claim=name, status=status, nodeName="a", containers=containers)


def waiting(name: str, after: int = 0, runtime: str = "", **stated: str) -> Pod:
    annotations = {**stated, **({RUNTIME: runtime} if runtime else {})}
    created = timestamp_at(NOW - 100 + after)
    return pod(name, "one", metadata={"annotations": annotations, "creationTimestamp": created})


def town(*there: tuple[Pod, ResourceClaim], pods: tuple[Pod, ...] = ()) -> World:
    claims = tuple(each for _, each in there)
    return cluster({"a": 1, "b": 1}, pods=(*(each for each, _ in there), *pods), claims=claims)


def explained(world: World, name: str) -> Explanation:
    found = world.pod("default", name)
    assert found is not None
    return explain_pod(world, found)


def test_a_pod_starts_when_the_first_that_is_in_its_way_ends() -> None:
    """The sentence says that it is an estimate, when, and what it rests on; the same is there as data."""
    world = town(running("x", "a", "1h"), running("y", "b", "30m"), pods=(waiting("p"),))
    estimate = explained(world, "p").estimate
    assert estimate is not None
    assert (estimate.start, estimate.seconds) == (timestamp_at(NOW + 1200), 1200)
    assert [(e.pod, e.node, e.basis) for e in estimate.rests_on] == [("y", "b", "declared")]
    assert estimate.sentence == (
        f"about {timestamp_at(NOW + 1200)}, in 20 minutes. This is an estimate: it rests on the end"
        f" of pod default/y at {timestamp_at(NOW + 1200)} (declared)."
    )


def test_a_gang_starts_when_all_that_are_in_its_way_have_ended() -> None:
    """Every member has the same answer."""
    members = tuple(waiting(f"g-{n}", **GANG) for n in range(2))
    world = town(running("x", "a", "1h"), running("y", "b", "30m"), pods=members)
    for name in ("g-0", "g-1"):
        estimate = explained(world, name).estimate
        assert estimate is not None
        assert estimate.seconds == 3000
        assert [e.pod for e in estimate.rests_on] == ["y", "x"]


def test_earlier_runs_are_counted() -> None:
    """Where nothing is declared, the estimate says in how many runs it was observed."""
    runs = tuple(ended(f"e{n}", 1000 + n, "train") for n in range(3))
    world = town(running("x", "a", image="train"), running("y", "b"), pods=(*runs, waiting("p")))
    estimate = explained(world, "p").estimate
    assert estimate is not None
    assert [(e.pod, e.basis, e.runs) for e in estimate.rests_on] == [("x", "observed", 3)]
    assert "(as in 3 earlier runs)" in estimate.sentence
    assert estimate.seconds == 402


def test_no_estimate_without_run_times() -> None:
    """It says how many pods are in the way of one; and where nothing is known of any pod, nothing at all."""
    members = tuple(waiting(f"g-{n}", **GANG) for n in range(2))
    world = town(running("x", "a"), running("y", "b", "1h"), pods=members)
    estimate = explained(world, "g-0").estimate
    assert estimate is not None
    assert (estimate.start, estimate.unknown) == ("", 1)
    assert estimate.sentence == (
        "No start can be estimated: it is not known how long 1 pod on nodes runs (drayman.dev/runtime says it)."
    )
    silent = town(running("x", "a"), running("y", "b"), pods=members)
    assert explained(silent, "g-0").estimate is None


def test_what_never_fits_has_no_estimate() -> None:
    """It does not wait for the end of anything, so it is not said how long others run."""
    lost = pod("p", "one", nodeSelector={"no": "node"})
    found = explained(town(running("x", "a"), running("y", "b", "1h"), pods=(lost,)), "p")
    assert (found.headline.reason, found.estimate) == (Reason.NODE_MISMATCH, None)


def test_room_that_is_reserved_for_those_before_is_not_offered() -> None:
    """A pod that would still be there when a gang starts is told so, as by the scheduler; one that ends in time fits."""
    members = tuple(waiting(f"g-{n}", **GANG) for n in range(2))
    others = (waiting("long", 10, "5h"), waiting("short", 20, "10m"), waiting("silent", 30))
    world = town(running("x", "a", "1h"), pods=(*members, *others))
    said = {name: explained(world, name).headline for name in ("long", "short", "silent")}
    assert {name: line.reason for name, line in said.items()} == {
        "long": Reason.ROOM_RESERVED,
        "short": Reason.FITS,
        "silent": Reason.ROOM_RESERVED,
    }
    assert "reserved for gang default/g, which comes first" in said["long"].sentence
    assert "it is not known how long the pod runs" in said["silent"].sentence
    with reserved_in(world) as reserved:
        headlines = PodHeadlines(world, reserved)
        found = [headlines.of(each).reason for each in others]
    assert found == [line.reason for line in said.values()]


def test_those_that_came_earlier_are_not_held_back() -> None:
    """A reservation concerns only what comes after it."""
    members = tuple(waiting(f"g-{n}", 50, **GANG) for n in range(2))
    world = town(running("x", "a", "1h"), pods=(*members, waiting("old")))
    assert explained(world, "old").headline.reason is Reason.FITS


def test_the_question_changes_nothing() -> None:
    """The same world gives the same answer again."""
    members = tuple(waiting(f"g-{n}", **GANG) for n in range(2))
    world = town(running("x", "a", "1h"), pods=(*members, waiting("late", 10)))
    first = [explained(world, name) for name in ("g-0", "late")]
    assert [explained(world, name) for name in ("g-0", "late")] == first


def test_room_that_is_made_is_not_held_back() -> None:
    """A pod for which others made way gets that room, and what waits with a promise has nothing reserved besides."""
    members = tuple(waiting(f"g-{n}", **GANG) for n in range(2))
    status = {"nominatedNodeName": "b"}
    made = timestamp_at(NOW - 90)
    late = pod("late", "one", metadata={"creationTimestamp": made}, status=status)
    other = waiting("other", 20)
    world = town(running("x", "a", "1h"), pods=(*members, late, other))
    assert explained(world, "late").headline.reason is Reason.FITS
    assert explained(world, "other").headline.reason is Reason.ROOM_RESERVED
    promised = tuple(replace(each, status=late.status) for each in members)
    alone = town(running("x", "a", "1h"), pods=(*promised, other))
    assert explained(alone, "other").headline.reason is Reason.FITS
