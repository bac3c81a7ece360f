"""Which moves are proposed, for what, and which pods stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drayman.api.codec import convert, to_dict
from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceClaim
from drayman.placement.runs.declaring import RUNTIME
from drayman.placement.world import World
from drayman.quota.fitting.rooms import ROOM
from drayman.reasons.reason import Reason
from drayman.simulate.moving.movers import Bar
from drayman.simulate.moving.proposing import propose
from drayman.simulate.moving.report import DefragReport
from drayman.simulate.moving.units import waiting_units
from placement.everything import everything
from simulate.cluster import DRIVER, held, pod
from simulate.moving.fragments import (
    RACK,
    STARTED,
    budget,
    fragmented,
    group,
    member,
    running,
)

Present = tuple[Pod, ResourceClaim]


def proposal(world: World, **options: Any) -> DefragReport:
    return propose(world, waiting_units(world), **options)


def moved(report: DefragReport) -> dict[str, tuple[str, str]]:
    """The nodes that pods leave and go to, by the name of the pod."""
    return {
        each.name: (each.before.node, each.after.node)
        for step in report.steps
        for each in step.pods
    }


def test_the_pod_that_costs_least_moves() -> None:
    """Of two pods whose move would do, the one with less to lose moves, to devices that are free, and the other stays."""
    world = fragmented(
        {"a": 4, "b": 4, "c": 4},
        [running("x", "a", [0, 1]), running("y", "b", [0]), running("z", "c", [0, 1, 2])],
        [pod("big", "four")],
    )
    report = proposal(world)
    assert moved(report) == {"y": ("b", "c")}
    ((step,), (seated,)) = report.rooms[0].steps, report.rooms[0].pods
    assert step.pods[0].owner == "Job/y-owner"
    assert step.pods[0].before.devices == ("gpu.example.com/b/gpu-0",)
    assert step.pods[0].after.devices == ("gpu.example.com/c/gpu-3",)
    assert (seated.name, seated.after.node, len(seated.after.devices)) == ("big", "b", 4)
    assert (report.cost.pods, report.cost.lost_device_seconds) == (1, step.pods[0].lost_seconds)


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        pytest.param({}, {"priority": 5}, id="lower priority"),
        pytest.param({"status": {"startTime": "2030-03-17T17:40:00Z"}}, {}, id="younger"),
    ],
)
def test_what_moves_matters_least(cheap: dict[str, Any], dear: dict[str, Any]) -> None:
    """Of pods with as many devices, the least important moves, and among equals the one that has run for the shortest time."""
    for first, second in ((cheap, dear), (dear, cheap)):
        world = fragmented(
            {"a": 4, "b": 4, "c": 1},
            [running("x", "a", [0], **dict(first)), running("y", "b", [0], **dict(second))],
            [pod("big", "four", priority=5)],
        )
        assert list(moved(proposal(world))) == ["x" if first is cheap else "y"]


def test_few_pods_move_rather_than_many() -> None:
    """One pod with three devices moves rather than two with one each."""
    world = fragmented(
        {"a": 4, "b": 4, "c": 3},
        [running("one", "a", [0]), running("other", "a", [1]), running("large", "b", [0, 1, 2])],
        [pod("big", "four")],
    )
    assert moved(proposal(world)) == {"large": ("b", "c")}


def test_nothing_moves_without_another_place() -> None:
    """Check 10 of gang topology: a plan that would leave a moved pod without a place is no plan."""
    world = fragmented(
        {"a": 4, "b": 4},
        [running("x", "a", [0, 1]), running("y", "b", [0, 1, 2])],
        [pod("big", "four")],
    )
    report = proposal(world)
    assert report.steps == ()
    (room,) = report.rooms
    assert (room.fits, room.obstacle) == (False, "pods that would have to move have no other place")
    assert room.waits is not None


def test_another_pod_moves_if_the_first_has_no_place() -> None:
    """A pod that is the cheapest to move but fits nowhere else stays, and two others move instead."""
    stuck = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
    world = fragmented(
        {"a": 4, "b": 4, "c": 4},
        [
            running("stuck", "a", [0], **stuck),
            running("one", "b", [0]),
            running("two", "b", [1]),
            running("c", "c", [0, 1]),
        ],
        [pod("big", "four")],
    )
    report = proposal(world)
    assert report.fits
    assert "stuck" not in moved(report)


STAYING = {
    Bar.NO_CONTROLLER: running("x", "a", [0], owner=""),
    Bar.DAEMON: running("x", "a", [0], owner="DaemonSet"),
    Bar.LEAVING: running("x", "a", [0], metadata={"deletionTimestamp": "2030-03-17T17:46:40Z"}),
    Bar.YOUNG: running("x", "a", [0], metadata={"annotations": {"drayman.dev/min-runtime": "24h"}}),
    Bar.ANNOTATED: running(
        "x",
        "a",
        [0],
        metadata={"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    ),
    Bar.BUDGET: running("x", "a", [0], metadata={"labels": {"app": "guarded"}}),
}


@pytest.mark.parametrize("bar", STAYING, ids=lambda bar: bar.name)
def test_what_stays(bar: Bar) -> None:
    """Pods that nothing would recreate, and pods that are protected, are not moved, and the answer counts them by the reason."""
    world = fragmented(
        {"a": 4, "b": 1},
        [STAYING[bar]],
        [pod("big", "four")],
        disruption_budgets=(budget("guard", 0, app="guarded"),),
    )
    report = proposal(world)
    assert report.steps == ()
    assert report.staying == {bar.value: 1}
    assert report.rooms[0].obstacle == "no pods that can be moved are in the way"


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        pytest.param({"backoffLimit": 0}, False, id="no retries"),
        pytest.param({"backoffLimit": 1}, True, id="a retry is left"),
        pytest.param(
            {
                "backoffLimit": 0,
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                        }
                    ]
                },
            },
            True,
            id="disruptions do not count",
        ),
    ],
)
def test_a_job_does_not_fail_by_a_move(spec: dict[str, Any], moves: bool) -> None:
    """A pod whose Job would count its eviction as the last failure stays."""
    job = convert(Job, {"metadata": {"name": "x-owner", "uid": "x-o"}, "spec": spec})
    world = fragmented(
        {"a": 4, "b": 1}, [running("x", "a", [0])], [pod("big", "four")], jobs=(job,)
    )
    report = proposal(world)
    assert report.fits is moves
    assert (Bar.LAST_TRY.value in report.staying) is not moves


def test_a_budget_lets_pods_go_one_after_the_other() -> None:
    """With one disruption allowed, two pods of a budget move in two steps."""
    labels = {"metadata": {"labels": {"app": "web"}}}
    world = fragmented(
        {"a": 4, "b": 2},
        [running("x", "a", [0], **labels), running("y", "a", [1], **labels)],
        [pod("big", "four")],
        disruption_budgets=(budget("guard", 1, app="web"),),
    )
    report = proposal(world)
    assert moved(report) == {"x": ("a", "b"), "y": ("a", "b")}
    assert [step.number for step in report.steps] == [1, 2]


def test_more_important_pods_stay() -> None:
    """Nothing is moved for a pod of lower priority."""
    world = fragmented(
        {"a": 4, "b": 1}, [running("x", "a", [0], priority=7)], [pod("big", "four", priority=6)]
    )
    assert proposal(world).steps == ()


def test_pods_that_share_a_claim_stay() -> None:
    """A claim that another pod uses, too, would keep its devices."""
    shared = held("shared", "a", "gpu-0")
    users = [{"resource": "pods", "name": name, "uid": name} for name in ("x", "y")]
    owner = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    raw = to_dict(shared)
    raw["status"]["reservedFor"] = users
    pods = [
        pod(name, claim="shared", nodeName="a", metadata={"ownerReferences": [owner]})
        for name in ("x", "y")
    ]
    world = fragmented(
        {"a": 4, "b": 4},
        [(pods[0], convert(ResourceClaim, raw)), running("z", "b", [0], owner="")],
        [pods[1], pod("big", "four")],
    )
    report = proposal(world)
    assert report.steps == ()
    assert report.staying[Bar.SHARED_CLAIM.value] == 2


def test_a_gang_gets_room_in_one_domain() -> None:
    """For a gang that requires one rack, pods leave the nodes of the rack that costs least, and go to another."""
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    world = fragmented(
        {"a": 4, "b": 4, "c": 4, "d": 4},
        [
            running("x", "a", [0, 1]),
            running("y", "b", [0]),
            running("z", "c", [0]),
        ],
        [member("m-0", "ring", "four"), member("m-1", "ring", "four")],
        racks={"a": "r1", "b": "r1", "c": "r2", "d": "r2"},
        pod_groups=(group("ring", 2, **constraint),),
    )
    report = proposal(world)
    assert list(moved(report)) == ["z"]
    assert {each.after.node for each in report.rooms[0].pods} == {"c", "d"}


def test_a_member_of_a_gang_stays_in_its_domain() -> None:
    """A member of a running gang that requires one rack is moved within that rack, though there is room elsewhere."""
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    inside = {"schedulingGroup": {"podGroupName": "ring"}}
    only = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
    world = fragmented(
        {"a": 4, "b": 4, "c": 4},
        [
            running("m-0", "a", [0], **dict(inside)),
            running("m-1", "b", [0, 1, 2], **dict(inside)),
        ],
        [pod("big", "four", **only)],
        racks={"a": "r1", "b": "r1", "c": "r2"},
        pod_groups=(group("ring", 2, **constraint),),
    )
    report = proposal(world)
    assert moved(report) == {"m-0": ("a", "b")}
    assert report.cost.gangs == 1


@pytest.mark.parametrize(
    ("grace", "least", "moves"),
    [
        pytest.param("0s", 2, False, id="it would be ended at once"),
        pytest.param("10m", 2, True, id="there is time for another member"),
        pytest.param("0s", 1, True, id="it can do without the member"),
    ],
)
def test_no_gang_is_ended_by_a_move(grace: str, least: int, moves: bool) -> None:
    """A member stays if the rest of its gang would be evicted before another one can be in its place."""
    stated = {"drayman.dev/gang": str(least), "drayman.dev/gang-name": "ring"}
    stated["drayman.dev/gang-grace"] = grace
    only = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
    world = fragmented(
        {"a": 4, "b": 4},
        [
            running("m-0", "a", [0], metadata={"annotations": stated}),
            running("m-1", "b", [0, 1, 2], metadata={"annotations": stated}),
        ],
        [pod("big", "four", **only)],
    )
    report = proposal(world)
    assert moved(report) == ({"m-0": ("a", "b")} if moves else {})
    assert (Bar.NEEDED.value in report.staying) != moves


def test_a_gang_that_goes_as_one_moves_as_one() -> None:
    """If a gang is disrupted as a whole, one step moves all of its members, to nodes that have them all."""
    inside = {"schedulingGroup": {"podGroupName": "ring"}}
    world = fragmented(
        {"a": 4, "b": 4, "c": 2},
        [running("m-0", "a", [0], **dict(inside)), running("m-1", "b", [0], **dict(inside))],
        [pod("big", "four")],
        pod_groups=(group("ring", 2, disruptionMode="PodGroup"),),
    )
    report = proposal(world)
    (step,) = report.steps
    assert {each.name for each in step.pods} == {"m-0", "m-1"}
    assert report.fits


def test_pods_are_not_moved_to_where_the_next_one_goes() -> None:
    """With two pods to make room for, what moves for the first does not take the place of the second, and no pod moves twice."""
    world = fragmented(
        {"a": 4, "b": 4, "c": 4, "d": 4},
        [running(f"{where}-{n}", where, [n]) for where in "abcd" for n in (0, 1)],
        [pod("big", "four"), pod("bigger", "four", priority=1)],
    )
    report = proposal(world)
    assert [room.name for room in report.rooms] == ["pod default/bigger", "pod default/big"]
    assert report.fits
    assert report.cost.pods == 4
    assert len({each.uid for step in report.steps for each in step.pods}) == 4


def test_what_has_room_needs_no_moves() -> None:
    """For a pod that fits as it is, nothing moves."""
    report = proposal(fragmented({"a": 4}, [], [pod("big", "four")]))
    assert (report.fits, report.steps, report.rooms[0].waits) == (True, (), None)


def test_a_pod_that_waits_for_something_else_gets_no_moves() -> None:
    """Moving pods does not help a pod whose claim does not exist, and the reason says so."""
    report = proposal(fragmented({"a": 4}, [running("x", "a", [0])], [pod("big", claim="missing")]))
    (room,) = report.rooms
    assert (room.fits, room.obstacle) == (False, "it waits for something other than room")
    assert room.waits is not None
    assert room.waits.reason.value == "ClaimMissing"


def test_the_number_of_moves_is_bounded() -> None:
    """No more pods are moved for one pod than was asked for."""
    present = [running(f"x{n}", "a", [n]) for n in range(3)]
    world = fragmented({"a": 4, "b": 3}, present, [pod("big", "four")])
    assert proposal(world, most=3).fits
    report = proposal(world, most=2)
    assert (report.steps, report.rooms[0].obstacle) == ((), "more than 2 pods would have to move")


def test_a_search_that_ends_early_is_no_refusal() -> None:
    """Where the steps do not suffice, the answer says that not all was tried."""
    world = fragmented({"a": 4, "b": 1}, [running("x", "a", [0])], [pod("big", "four")])
    (room,) = proposal(world, steps=1).rooms
    assert (room.fits, room.is_final) == (False, False)


def test_the_world_stays_as_it_is() -> None:
    """Asking changes nothing, so the same snapshot has the same answer."""
    world = fragmented(
        {"a": 4, "b": 4, "c": 4},
        [running("x", "a", [0, 1]), running("y", "b", [0]), running("z", "c", [0, 1, 2])],
        [pod("big", "four")],
    )
    first = proposal(world)
    assert proposal(world) == first
    assert proposal(world.with_objects(world.objects)) == first


def declares(seconds: int) -> dict[str, Any]:
    return {"annotations": {RUNTIME: f"{seconds}s"}}


def test_what_is_reserved_is_not_offered_to_others() -> None:
    """A pod that needs all of a node waits until another one ends there, which cannot be moved. What is free there until then is for pods
    that end before, and for no others."""
    world = fragmented(
        {"a": 4},
        [running("x", "a", [0, 1], metadata=declares(3600))],
        [
            pod("big", "four", priority=10),
            pod("endless", "one"),
            pod("short", "one", metadata=declares(60)),
        ],
    )
    rooms = {room.name.rpartition("/")[2]: room for room in proposal(world).rooms}
    assert {name: room.fits for name, room in rooms.items()} == {
        "big": False,
        "endless": False,
        "short": True,
    }
    waits = rooms["endless"].waits
    assert waits is not None
    assert waits.reason is Reason.ROOM_RESERVED


def test_the_places_of_admitted_workloads_are_theirs() -> None:
    """A workload is admitted with a place for each of its two pods, one of which exists. That pod can have its place, the other one's place
    is taken, and a third pod gets neither."""
    places = [
        {"podSet": "main", "number": number, "node": "a", "devices": [given]}
        for number, given in enumerate(allocation("a", f"gpu-{n}") for n in range(2))
    ]
    mine = {"labels": {"kueue.x-k8s.io/podset": "main"}, "ownerReferences": [TRAIN]}
    first, stranger = pod("first", "one", metadata=mine), pod("stranger", "one")
    world = fragmented(
        {"a": 2}, [], [first, stranger], queued_workloads=(admitted(first, 2, places),)
    )
    before = everything(world.state)
    rooms = {room.name.rpartition("/")[2]: room for room in proposal(world).rooms}
    assert {name: room.fits for name, room in rooms.items()} == {"first": True, "stranger": False}
    assert everything(world.state) == before


def test_room_is_made_where_a_pod_has_a_place_that_is_too_small() -> None:
    """As after its claim template was replaced. Its own place is not in its way."""
    places = [{"podSet": "main", "number": 0, "node": "a", "devices": [allocation("a", "gpu-0")]}]
    mine = {"labels": {"kueue.x-k8s.io/podset": "main"}, "ownerReferences": [TRAIN]}
    first = pod("first", "four", metadata=mine)
    world = fragmented(
        {"a": 4, "b": 4},
        [running("x", "a", [1]), running("y", "b", [0, 1])],
        [first],
        queued_workloads=(admitted(first, 1, places),),
    )
    assert moved(proposal(world)) == {"x": ("a", "b")}


TRAIN = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train"}


def allocation(pool: str, device: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
    return {"devices": {"results": [result]}}


def admitted(of: Pod, count: int, places: list[dict[str, Any]]) -> Workload:
    """The workload `train`, for so many pods that are like this one."""
    true = {"status": "True", "reason": "x", "message": "", "lastTransitionTime": STARTED}
    assigned = {"name": "main", "flavors": {}, "count": count}
    template = {"spec": to_dict(of.spec)}
    metadata = {
        "name": "train",
        "namespace": "default",
        "annotations": {ROOM: json.dumps({"places": places})},
        "ownerReferences": [TRAIN],
    }
    return convert(
        Workload,
        {
            "metadata": metadata,
            "spec": {"podSets": [{"name": "main", "count": count, "template": template}]},
            "status": {
                "conditions": [{"type": each, **true} for each in ("QuotaReserved", "Admitted")],
                "admission": {"clusterQueue": "q", "podSetAssignments": [assigned]},
            },
        },
    )
