"""Nodes that fall silent, are tainted or are removed, and what becomes of their pods."""

from __future__ import annotations

from functools import partial

import pytest

from controllers.workloads.stage import NAMESPACE, Make, Stage, stage
from drayman.api.codec import convert
from drayman.api.core import Node, NodeCondition, Pod, PodSpec, Taint, Toleration
from drayman.api.meta import ObjectMeta
from drayman.api.times import timestamp_at
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import LEASES, NODES, PODS, JsonObject
from drayman.controllers.nodes.eviction import TaintedNodeController, leaves_at
from drayman.controllers.nodes.health import conditions_of, taints_of
from drayman.controllers.nodes.lifecycle import NodeLifecycleController, NodeOptions
from drayman.controllers.nodes.pod_collection import PodCollector

LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def in_step(make: Make) -> Make:
    """A controller all of whose clocks are the one that the test puts forward."""
    return lambda client, informers, *, clock: make(client, informers, clock=clock, steady=clock)


ALL = (in_step(NodeLifecycleController), TaintedNodeController, in_step(PodCollector))


async def add_node(place: Stage, name: str, *, lease: bool = True) -> None:
    """A node that is ready, as a kubelet registers it."""
    await place.create(NODES, {"metadata": {"name": name}})
    await post_ready(place, name)
    if lease:
        body: JsonObject = {
            "metadata": {"name": name},
            "spec": {"holderIdentity": name, "renewTime": "2026-01-01T00:00:00.000000Z"},
        }
        await place.client.create(LEASES, body, LEASE_NAMESPACE)


async def post_ready(place: Stage, name: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    await place.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")


async def beat(place: Stage, name: str, number: int = 1) -> None:
    renewed = {"spec": {"renewTime": f"2026-01-01T00:00:{number:02}.000000Z"}}
    await place.client.patch(LEASES, name, merge_patch(renewed), LEASE_NAMESPACE)


async def add_pod(place: Stage, name: str, node: str, tolerations: tuple = ()) -> Pod:
    container = {"name": "main", "image": "i"}
    spec = {"containers": [container], "tolerations": list(tolerations)}
    await place.create(PODS, {"metadata": {"name": name}, "spec": spec})
    await place.client.bind(name, NAMESPACE, node)
    await place.run_pod(await place.get(PODS, name))
    return await place.get(PODS, name)


async def pass_time(place: Stage, until: float, name: str) -> None:
    """Puts the clock forward, so that all nodes have been silent since, but for a new one that is heard."""
    place.clock.ahead = until
    await add_node(place, name)
    await place.until_one(NODES, name, lambda n: not n.spec.taints)


async def poke(place: Stage, node: str) -> None:
    await place.patch(NODES, node, {"metadata": {"annotations": {"look": "again"}}})


def taints(node: Node) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in node.spec.taints}


def readiness(value: Node | Pod) -> str:
    return next((c.status for c in value.status.conditions if c.type_ == "Ready"), "")


async def test_a_ready_node_loses_the_taint_it_is_born_with() -> None:
    """Once it is ready and has a lease, pods may come."""
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)


async def test_a_silent_node_is_unreachable_until_it_answers() -> None:
    """Conditions turn Unknown, taints keep pods away, its pods are not ready; when it answers all of that ends."""
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)
        await add_pod(place, "p", "n1")
        await pass_time(place, 41.0, "n2")
        await poke(place, "n1")
        silent = await place.until_one(NODES, "n1", lambda n: readiness(n) == "Unknown")
        reason = next(c.reason for c in silent.status.conditions if c.type_ == "Ready")
        assert reason == "NodeStatusUnknown"
        await place.until_one(
            NODES,
            "n1",
            lambda n: taints(n) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")},
        )
        await place.until_one(PODS, "p", lambda p: readiness(p) == "False")
        assert not (await place.get(NODES, "n2")).spec.taints
        await beat(place, "n1", 2)
        await post_ready(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)


async def test_the_silence_of_a_node_without_a_lease_means_nothing() -> None:
    """It does not promise to be heard, and is taken at its word: ready, so the taint it was made with goes."""
    async with stage(*ALL) as place:
        await add_node(place, "n1", lease=False)
        await add_node(place, "n2")
        await place.until_one(NODES, "n2", lambda n: not n.spec.taints)
        place.clock.ahead = 1000.0
        for name in ("n1", "n2"):
            await poke(place, name)
        await place.until_one(NODES, "n2", lambda n: readiness(n) == "Unknown")
        alone = await place.get(NODES, "n1")
        assert readiness(alone) == "True"
        assert not taints(alone)


async def test_a_node_that_does_not_say_it_is_ready_keeps_its_taint() -> None:
    """Pods stay away from a node that nobody has reported ready, with a lease or without."""
    async with stage(*ALL) as place:
        await place.client.create(NODES, Node(metadata=ObjectMeta(name="n1")))
        await add_node(place, "n2", lease=False)
        await place.until_one(NODES, "n2", lambda n: not n.spec.taints)
        assert taints(await place.get(NODES, "n1")) == {(NOT_READY, "NoSchedule")}


async def test_a_restarted_controller_gives_every_node_its_time_again() -> None:
    """Times that nodes wrote long ago are not held against them."""
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await add_node(place, "n2")
        await place.until(NODES, lambda nodes: not any(n.spec.taints for n in nodes))
        await place.crash()
        place.clock.ahead = 1000.0
        await place.start(*ALL)
        await poke(place, "n1")
        await add_node(place, "n3")
        await place.until_one(NODES, "n3", lambda n: not n.spec.taints)
        assert readiness(await place.get(NODES, "n1")) == "True"


async def test_pods_are_asked_to_leave_when_their_patience_ends() -> None:
    """A pod with the default tolerations goes after 300 s, one without a limit stays."""
    forever = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
    async with stage(TaintedNodeController) as place:
        await add_node(place, "n1")
        await add_pod(place, "ordinary", "n1")
        await add_pod(place, "patient", "n1", (forever,))
        added = timestamp_at(place.clock())
        taint = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": added}
        await place.patch(NODES, "n1", {"spec": {"taints": [taint]}})
        place.clock.ahead = 290.0
        await poke(place, "n1")
        await place.until_one(NODES, "n1", lambda n: "look" in n.metadata.annotations)
        assert (await place.get(PODS, "ordinary")).metadata.deletion_timestamp is None
        place.clock.ahead = 301.0
        await add_pod(place, "another", "n1")
        gone = await place.until_one(
            PODS, "ordinary", lambda p: p.metadata.deletion_timestamp is not None
        )
        target = next(c for c in gone.status.conditions if c.type_ == "DisruptionTarget")
        assert target.reason == "DeletionByTaintManager"
        assert (await place.get(PODS, "patient")).metadata.deletion_timestamp is None
        await place.told("TaintManagerEviction")


async def test_a_taint_ahead_of_the_clock_counts_from_when_it_was_seen() -> None:
    async with stage(TaintedNodeController) as place:
        await add_node(place, "n1")
        await add_pod(place, "p", "n1")
        added = timestamp_at(place.clock() + 7_200)
        taint = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": added}
        await place.patch(NODES, "n1", {"spec": {"taints": [taint]}})
        await poke(place, "n1")
        await place.until_one(NODES, "n1", lambda n: "look" in n.metadata.annotations)
        place.clock.ahead = 600.0
        await add_pod(place, "another", "n1")
        await place.until_one(PODS, "p", lambda p: p.metadata.deletion_timestamp is not None)


async def test_pods_of_a_silent_node_stay_until_it_is_removed() -> None:
    """Asked to leave, a pod keeps what it holds; when the node is removed, it is failed and gone."""
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)
        pod = await add_pod(place, "p", "n1")
        taint = {"key": "k", "effect": "NoExecute"}
        await place.patch(NODES, "n1", {"spec": {"taints": [taint]}})
        await place.until_one(PODS, "p", lambda p: p.metadata.deletion_timestamp is not None)
        place.clock.ahead = 10_000.0
        await poke(place, "n1")
        assert (await place.get(PODS, "p")).metadata.uid == pod.metadata.uid
        await place.client.delete(NODES, "n1")
        await place.until(NODES, lambda nodes: not nodes)
        # The first look at the pod of a missing node begins its quarantine; a later one ends it.
        await place.patch(PODS, "p", {"metadata": {"annotations": {"look": "1"}}})
        await place.until_one(PODS, "p", lambda p: p.metadata.annotations.get("look") == "1")
        assert [p.metadata.name for p in await place.pods()] == ["p"]
        await place.crash()
        await place.start(partial(PodCollector, options=NodeOptions(quarantine=0.0)))
        await place.until(PODS, lambda pods: not pods)


async def test_when_all_nodes_fall_silent_no_pod_is_asked_to_leave() -> None:
    """The fault is then more likely here: nodes take no new pods, those that are there stay."""
    async with stage(*ALL) as place:
        for name in ("n1", "n2"):
            await add_node(place, name)
        await place.until(NODES, lambda nodes: not any(n.spec.taints for n in nodes))
        place.clock.ahead = 41.0
        for name in ("n1", "n2"):
            await poke(place, name)
        nodes = await place.until(
            NODES, lambda nodes: all((UNREACHABLE, "NoSchedule") in taints(n) for n in nodes)
        )
        assert not any((UNREACHABLE, "NoExecute") in taints(n) for n in nodes)


async def test_a_clock_that_is_set_silences_no_node() -> None:
    """Only time that has really passed counts: after a leap nodes are ready, and pods of one that is gone stay for now."""
    async with stage(NodeLifecycleController, PodCollector) as place:
        for name in ("n1", "n2", "n3"):
            await add_node(place, name)
        await place.until(NODES, lambda nodes: not any(n.spec.taints for n in nodes))
        await add_pod(place, "p", "n3")
        await place.client.delete(NODES, "n3")
        place.clock.ahead = 86_400.0
        await poke(place, "n1")
        await pass_time(place, 86_401.0, "n4")
        await pass_time(place, 86_402.0, "n5")
        assert [readiness(n) for n in await place.until(NODES, lambda n: len(n) == 4)] == [
            "True"
        ] * 4
        assert (await place.get(PODS, "p")).metadata.deletion_timestamp is None


async def test_a_node_out_of_service_gives_up_its_pods() -> None:
    """Where somebody says that a node will not come back, its terminating pods are removed."""
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)
        await add_pod(place, "p", "n1")
        out = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        await place.patch(NODES, "n1", {"spec": {"taints": [out]}})
        await place.until_one(PODS, "p", lambda p: p.metadata.deletion_timestamp is not None)
        place.clock.ahead = 41.0
        await poke(place, "n1")
        await place.until(PODS, lambda pods: not pods)


async def test_an_eviction_is_cancelled_when_the_taint_goes() -> None:
    """A pod that was to leave later stays, and an event says so."""
    brief = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 100}
    async with stage(*ALL) as place:
        await add_node(place, "n1")
        await place.until_one(NODES, "n1", lambda n: not n.spec.taints)
        await add_pod(place, "p", "n1", (brief,))
        await place.patch(NODES, "n1", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await add_pod(place, "q", "n1")
        await place.until_one(PODS, "q", lambda p: p.metadata.deletion_timestamp is not None)
        await place.patch(NODES, "n1", {"spec": {"taints": None}})
        place.clock.ahead = 200.0
        await beat(place, "n1", 3)
        await poke(place, "n1")
        await place.until_one(NODES, "n1", lambda n: "look" in n.metadata.annotations)
        assert (await place.get(PODS, "p")).metadata.deletion_timestamp is None


def _condition(type_: str, status: str) -> NodeCondition:
    return NodeCondition(type_=type_, status=status)


TAINTS = {
    "ready": ([("Ready", "True")], {}, set()),
    "not ready": ([("Ready", "False")], {}, {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}),
    "not known": (
        [("Ready", "Unknown")],
        {},
        {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")},
    ),
    "short of memory": (
        [("Ready", "True"), ("MemoryPressure", "True")],
        {},
        {("node.kubernetes.io/memory-pressure", "NoSchedule")},
    ),
    "cordoned": (
        [("Ready", "True")],
        {"unschedulable": True},
        {("node.kubernetes.io/unschedulable", "NoSchedule")},
    ),
    "somebody else's taint": (
        [("Ready", "True")],
        {
            "taints": [
                {"key": "mine", "effect": "NoExecute"},
                {"key": NOT_READY, "effect": "NoSchedule"},
            ]
        },
        {("mine", "NoExecute")},
    ),
    "no condition yet": ([], {"taints": [{"key": NOT_READY, "effect": "NoSchedule"}]}, set()),
}


@pytest.mark.parametrize("case", TAINTS)
def test_taints_follow_conditions(case: str) -> None:
    """Those that are set here come and go with the conditions; others are not touched."""
    given, spec, expected = TAINTS[case]
    conditions = tuple(_condition(*pair) for pair in given)
    node = convert(Node, {"metadata": {"name": "n"}, "spec": spec})
    found = taints_of(node, conditions, evicting=True, now=0.0)
    assert {(taint.key, taint.effect) for taint in found} == expected


def test_a_node_that_never_wrote_its_status_is_not_known() -> None:
    """Silent from the beginning, it gets the conditions that it should have written."""
    found = conditions_of(Node(), silent=True, now=0.0)
    assert {(c.type_, c.status, c.reason) for c in found} == {
        (type_, "Unknown", "NodeStatusNeverUpdated")
        for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    }


LEAVING = {
    "nothing is tolerated": ([], 100.0),
    "tolerated for a while": ([("k", 30)], 130.0),
    "the shortest of several counts": ([("k", 30), ("", 10)], 110.0),
    "for good": ([("k", None)], None),
    "a negative time is none": ([("k", -5)], 100.0),
    "another taint is tolerated": ([("other", None)], 100.0),
}


@pytest.mark.parametrize("case", LEAVING)
def test_when_a_pod_has_to_leave(case: str) -> None:
    """By its tolerations, counted from when the taint was there."""
    given, expected = LEAVING[case]
    tolerations = tuple(
        Toleration(key=key, operator="Exists", toleration_seconds=limit) for key, limit in given
    )
    pod = Pod(spec=PodSpec(tolerations=tolerations))
    taint = Taint(key="k", effect="NoExecute")
    assert leaves_at(pod, {taint: 100.0}) == expected


async def test_no_more_than_so_many_pods_that_have_ended_are_kept() -> None:
    """The others are removed, however many there are; pods that run are left alone."""
    async with stage() as place:
        await add_node(place, "a", lease=False)
        for number in range(8):
            pod = await add_pod(place, f"p{number}", "a")
            if number:
                await place.set_phase(pod, "Succeeded" if number % 2 else "Failed")
        await place.start(partial(PodCollector, most_ended=3))
        left = await place.until(PODS, lambda pods: len(pods) == 4)
        assert [p.metadata.name for p in left if p.status.phase == "Running"] == ["p0"]
        await place.set_phase(left[0], "Succeeded")
        await place.until(PODS, lambda pods: len(pods) == 3)
