"""Twelve checks that a scheduler of gangs should pass, each by its number.

Shares of queues (8) and what queues may take from each other (9) are in `tests/quota/shares/test_gang_checks.py`: of the ninth there is
here what holds without queues. The tenth is about proposals of `drayman defrag`; more about those is in `tests/simulate/moving`.
"""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import NAMESPACE, eventually
from drayman.allocator import Policy
from drayman.api.pod_groups import PodGroup
from drayman.cluster.resources import POD_GROUPS, PODS, JsonObject, generic
from drayman.simulate.moving.proposing import propose
from drayman.simulate.moving.units import waiting_units
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    POD_VALUES,
    SLICE_VALUES,
    Stage,
    device,
    devices_of,
    from_template,
    prefers,
    staged,
    users_of,
)
from scheduler.behaviour.test_gangs import (
    GROUP_VALUES,
    RACK,
    make_gang,
    nodes_of,
    prepare,
    start,
)
from simulate.cluster import pod
from simulate.moving.fragments import fragmented, running

ZONE = "topology.kubernetes.io/zone"
CLIQUE = "nvidia.com/gpu.clique"
PRIORITIES = generic("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False)


async def fleet(stage: Stage, level: str, devices: int = 1, **domains: int) -> None:
    """Nodes of one device each, so many in each domain of a level. The domain `nowhere` is none: its nodes have no label."""
    await stage.device_class()
    await stage.make_template("t")
    for domain, number in domains.items():
        labels = {} if domain == "nowhere" else {level: domain}
        names = [f"gpu-{n}" for n in range(devices)]
        for n in range(number):
            await stage.node(f"{domain}-{n}", *names, labels=labels)


async def domains_of(stage: Stage, *names: str) -> set[str]:
    await stage.bound(*names)
    found = await nodes_of(stage)
    return {found[name].rpartition("-")[0] for name in names}


async def holds_nothing(stage: Stage, *names: str) -> None:
    """Pods have neither nodes nor devices."""
    found = await nodes_of(stage)
    assert [found[name] for name in names] == [""] * len(names)
    for name in names:
        for claim in (await stage.generated(name)).values():
            known = None if claim is None else await stage.get_claim(claim)
            assert known is None or (known.status.allocation, users_of(known)) == (None, [])


async def impossible(stage: Stage, name: str, gang: str = "g") -> None:
    await stage.start_pod(
        name,
        from_template(),
        schedulingGroup={"podGroupName": gang},
        nodeSelector={"no": "such-node"},
    )


async def test_check_01_quorum_without_an_impossible_member(cluster: Cluster) -> None:
    """Of three members one can go nowhere. Two are enough: exactly the others start."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await make_gang(stage, 2)
        await impossible(stage, "a")
        await start(stage, "b", "c")
        await stage.bound("b", "c")
        await stage.refused("a")
        await stage.keeps_waiting("a")


async def test_check_01_no_quorum_because_of_an_impossible_member(cluster: Cluster) -> None:
    """Three are needed: none starts."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await make_gang(stage, 3)
        await impossible(stage, "a")
        await start(stage, "b", "c")
        for name in "abc":
            await stage.refused(name, "Pod group default/g")
        await holds_nothing(stage, *"abc")


async def test_check_02_two_gangs_and_room_for_one(cluster: Cluster) -> None:
    """One starts whole; the other has nothing, and a pod on its own gets what is left."""
    async with cluster() as stage:
        await prepare(stage, *(f"gpu-{n}" for n in range(5)))
        for gang in ("g", "h"):
            await make_gang(stage, 4, gang)
        for number in range(4):
            await start(stage, f"g{number}", gang="g")
            await start(stage, f"h{number}", gang="h")
        first = [f"g{n}" for n in range(4)]
        second = [f"h{n}" for n in range(4)]
        await stage.bound(*first)
        await stage.refused("h0", "Pod group default/h", "1 of 4 pods fit at once")
        await holds_nothing(stage, *second)
        await stage.start_pod("alone", from_template())
        await stage.bound("alone")


async def test_check_03_a_restarted_member_comes_back_to_its_domain(cluster: Cluster) -> None:
    """Or it waits, and the reason names the domain."""
    async with cluster() as stage:
        await fleet(stage, RACK, a=2)
        await make_gang(stage, 2, schedulingConstraints={"topology": [{"key": RACK}]})
        await start(stage, "p", "q")
        assert await domains_of(stage, "p", "q") == {"a"}
        for number in range(4):
            await stage.node(f"b-{number}", "gpu-0", labels={RACK: "b"})
        await stage.finish("q", "Failed")
        await stage.remove(POD_VALUES, "q")
        await start(stage, "q")
        assert await domains_of(stage, "q") == {"a"}
        await stage.finish("q", "Failed")
        await stage.remove(POD_VALUES, "q")
        home = (await nodes_of(stage))["p"]
        other = next(f"a-{n}" for n in range(2) if f"a-{n}" != home)
        await stage.start_pod(
            "alone", from_template(), nodeSelector={"kubernetes.io/hostname": other}
        )
        await stage.bound("alone")
        await start(stage, "q")
        await stage.refused("q", "GangScattered", "Members run in rack a")
        await stage.remove(POD_VALUES, "alone")
        assert await domains_of(stage, "q") == {"a"}


async def test_check_04_nodes_without_the_label_are_not_used(cluster: Cluster) -> None:
    """Though they have room for all of it, and a labelled one only for one."""
    async with cluster() as stage:
        await fleet(stage, RACK, a=1, nowhere=3)
        await make_gang(stage, 2, schedulingConstraints={"topology": [{"key": RACK}]})
        await start(stage, "p", "q")
        await stage.refused("p", "has to be in one rack", "rack a holds 1 of 2")
        await holds_nothing(stage, "p", "q")
        await stage.node("a-1", "gpu-0", labels={RACK: "a"})
        assert await domains_of(stage, "p", "q") == {"a"}


async def test_check_05_the_clique_that_holds_the_gang(cluster: Cluster) -> None:
    """Cliques with 3 and 4 free nodes: the gang of 4 goes to the second although the first is fuller."""
    async with cluster() as stage:
        await fleet(stage, CLIQUE, full=4, other=5)
        busy = {"full-3": "x", "other-4": "y"}
        for node, name in busy.items():
            selector = {"kubernetes.io/hostname": node}
            await stage.start_pod(name, from_template(), nodeSelector=selector)
        await stage.bound(*busy.values())
        await make_gang(stage, 4, schedulingConstraints={"topology": [{"key": CLIQUE}]})
        await start(stage, *"pqrs")
        assert await domains_of(stage, *"pqrs") == {"other"}


def half_or_whole(number: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """The devices of GPUs that can be used whole or as two halves, and the counters that say so."""
    counters = [{"name": f"gpu-{n}", "counters": {"halves": {"value": "2"}}} for n in range(number)]
    devices = []
    for n in range(number):
        for name, kind, halves in (
            ("whole", "whole", 2),
            ("left", "half", 1),
            ("right", "half", 1),
        ):
            spends = [{"counterSet": f"gpu-{n}", "counters": {"halves": {"value": str(halves)}}}]
            attributes = {"kind": {"string": kind}}
            devices.append(
                device(f"gpu-{n}-{name}", attributes=attributes, consumesCounters=spends)
            )
    return devices, counters


async def test_check_06_whole_devices_are_given_up_for_halves(cluster: Cluster) -> None:
    """Two devices, four pods that want a whole one or else half of one: all four start."""
    async with cluster() as stage:
        for kind in ("whole", "half"):
            await stage.device_class(kind, f'device.attributes["gpu.example.com"].kind == "{kind}"')
        await stage.node("node-a")
        devices, counters = half_or_whole(2)
        for name, part in (
            ("counters", {"sharedCounters": counters}),
            ("devices", {"devices": devices}),
        ):
            await stage.create(
                SLICE_VALUES,
                {
                    "metadata": {"name": name},
                    "spec": {
                        "driver": "gpu.example.com",
                        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 2},
                        "nodeName": "node-a",
                        **part,
                    },
                },
            )
        await stage.make_template("t", prefers("whole", "half"))
        await make_gang(stage, 4)
        await start(stage, *"pqrs")
        await stage.bound(*"pqrs")
        used = [devices_of(await stage.claim_of(name))[0] for name in "pqrs"]
        assert sorted(used) == [f"gpu-{n}-{half}" for n in range(2) for half in ("left", "right")]


async def group_claim(stage: Stage, least: int, number: int) -> PodGroup:
    """A gang whose pods share one claim."""
    await stage.device_class()
    await stage.node("node-a", "gpu-0", allocatable={"pods": "400", "cpu": "400"})
    await stage.make_template("t")
    await make_gang(stage, least, resourceClaims=[from_template()])
    for n in range(number):
        await start(stage, f"p{n}")
    return await stage.client.get(POD_GROUPS, "g", NAMESPACE)


async def test_check_07_a_claim_that_300_pods_share(cluster: Cluster) -> None:
    """More than a claim can have consumers: the group is the only one."""
    async with cluster() as stage:
        group = await group_claim(stage, 300, 300)

        async def without_node() -> int:
            pods = (await stage.client.list(PODS, NAMESPACE)).items
            return sum(not pod.spec.node_name for pod in pods)

        await eventually(without_node, lambda number: not number)
        (claim,) = await stage.claims()
        users = [(user.resource, user.name, user.uid) for user in claim.status.reserved_for]
        assert users == [("podgroups", "g", group.metadata.uid)]
        assert devices_of(claim) == ["gpu-0"]


async def test_check_07_the_claim_stays_reserved_while_a_member_runs(cluster: Cluster) -> None:
    """Members that end, and one that cannot join, change nothing. With the group it goes."""
    async with cluster() as stage:
        await group_claim(stage, 2, 2)
        await stage.bound("p0", "p1")
        await impossible(stage, "a")
        await stage.refused("a")
        (claim,) = await stage.claims()
        assert (users_of(claim), devices_of(claim)) == (["g"], ["gpu-0"])
        await stage.finish("p0")
        await stage.remove(POD_VALUES, "p0")
        (claim,) = await stage.claims()
        assert (users_of(claim), devices_of(claim)) == (["g"], ["gpu-0"])
        for name in ("p1", "a"):
            await stage.remove(POD_VALUES, name)
        await stage.delete(GROUP_VALUES, "g")
        await eventually(stage.claims, lambda claims: not claims)


async def test_check_09_nothing_of_the_same_priority_is_preempted(cluster: Cluster) -> None:
    """Without queues, this is what keeps one's work from another's: priority, and the will not to preempt."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0")
        await stage.create(
            PRIORITIES,
            {"metadata": {"name": "meek"}, "value": 1000, "preemptionPolicy": "Never"},
        )
        await stage.start_pod("first", from_template())
        await stage.bound("first")
        await stage.start_pod("equal", from_template())
        await stage.start_pod("meek", from_template(), priorityClassName="meek")
        for name in ("equal", "meek"):
            await stage.refused(name, "DevicesInUse")
        await stage.stays_bound("first")


@pytest.mark.parametrize(("spare", "moved"), [(0, []), (1, []), (2, ["x"])])
def test_check_10_nothing_moves_unless_all_that_move_have_a_place(
    spare: int, moved: list[str]
) -> None:
    """Four devices of one node are wanted. A pod that is in the way moves if a third node has its two to spare."""
    present = [running("x", "a", [0, 1]), running("y", "b", [0, 1, 2])]
    world = fragmented({"a": 4, "b": 4, "c": spare}, present, [pod("big", "four")])
    report = propose(world, waiting_units(world))
    found = [(each.name, each.after.node) for step in report.steps for each in step.pods]
    assert found == [(name, "c") for name in moved]
    assert report.fits == bool(moved)


async def preferring(stage: Stage, preferred: str, required: str = "", least: int = 2) -> None:
    said = {"drayman.dev/preferred-level": preferred}
    if required:
        said["drayman.dev/required-level"] = required
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": "g", "annotations": said}
    await stage.create(GROUP_VALUES, {"metadata": metadata, "spec": policy})


async def zones(stage: Stage, **nodes: tuple[str, str]) -> None:
    """Nodes of one device with zone and rack."""
    await stage.device_class()
    await stage.make_template("t")
    for name, (zone, rack) in nodes.items():
        labels = {ZONE: zone, RACK: rack}
        await stage.node(f"{zone}-{name}", "gpu-0", labels=labels)


async def test_check_11_a_preferred_level_without_room_falls_back_to_wider_ones(
    cluster: Cluster,
) -> None:
    """No rack holds both members, one zone does."""
    async with cluster() as stage:
        await zones(stage, a=("z1", "r1"), b=("z2", "r2"), c=("z2", "r3"))
        await preferring(stage, RACK, ZONE)
        await start(stage, "p", "q")
        assert await domains_of(stage, "p", "q") == {"z2"}


async def test_check_11_without_any_domain_the_required_level_is_the_reason(
    cluster: Cluster,
) -> None:
    async with cluster() as stage:
        await zones(stage, a=("z1", "r1"), b=("z2", "r2"))
        await preferring(stage, RACK, ZONE)
        await start(stage, "p", "q")
        await stage.refused("p", "has to be in one zone", "zone z1 holds 1 of 2")
        await holds_nothing(stage, "p", "q")


async def test_check_11_a_preferred_level_that_no_node_has(cluster: Cluster) -> None:
    """It is passed over; the required one holds."""
    async with cluster() as stage:
        await fleet(stage, ZONE, z1=1, z2=2)
        await preferring(stage, "example.com/pod-of-racks", ZONE)
        await start(stage, "p", "q")
        assert await domains_of(stage, "p", "q") == {"z2"}


async def played(stage: Stage) -> dict[str, Any]:
    """What becomes of two gangs and lone pods in a cluster that was filled in a fixed order."""
    await fleet(stage, RACK, devices=2, a=3, b=3, c=1)
    for name in ("x", "y"):
        await stage.start_pod(name, from_template())
        await stage.bound(name)
    for gang in ("g", "h"):
        await make_gang(stage, 3, gang, schedulingConstraints={"topology": [{"key": RACK}]})
        for number in range(3):
            await start(stage, f"{gang}{number}", gang=gang)
        await stage.bound(*(f"{gang}{number}" for number in range(3)))
    found = await nodes_of(stage)
    return {
        name: (node, devices_of(await stage.claim_of(name))) for name, node in sorted(found.items())
    }


@pytest.mark.parametrize("policy", ["best", "first-fit"])
async def test_check_12_the_same_cluster_has_the_same_answer(
    tmp_path_factory: pytest.TempPathFactory, policy: str
) -> None:
    """In two clusters to which the same happens, nodes and devices are the same."""
    answers = []
    for number in range(2):
        folder = tmp_path_factory.mktemp(f"run-{number}")
        async with staged(folder, policy=Policy(policy)) as stage:
            answers.append(await played(stage))
    assert answers[0] == answers[1]
