"""What is said about a gang is what the scheduler says: explanations, conditions and plans are one decision."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert, to_dict
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.explain.group import explain_group
from drayman.explain.pod import explain_pod
from drayman.placement.gangs.levels import PREFERRED
from drayman.placement.world import Objects, World, state_of
from drayman.reasons.reason import Outlook, Reason
from drayman.scheduler.cycle import Cycle
from drayman.scheduler.queue import Queue
from drayman.simulate.planning import plan
from explain.applying import apply
from simulate.cluster import NOW, alone, claim, cluster, held, node, pod, wanted

RACK = "topology.kubernetes.io/rack"
RACKS = ("a", "a", "b", "b", "")

Gang = tuple[int, bool, list[tuple[int, bool]]]
"""How many start together, whether in one rack, and the members: how many devices each wants and whether it is gated."""
GANGS: st.SearchStrategy[Gang] = st.tuples(
    st.integers(1, 4),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([False] * 5 + [True])), min_size=1, max_size=4),
)  # fmt: skip
DEVICES = st.lists(st.integers(0, 4), min_size=5, max_size=5)
IN_USE = st.lists(st.integers(0, 2), min_size=5, max_size=5)


def group(least: int, *, in_one_rack: bool) -> PodGroup:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if in_one_rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    return convert(PodGroup, {"metadata": metadata, "spec": spec})


def fields_of(number: int, member: tuple[int, bool]) -> dict[str, Any]:
    _, is_gated = member
    gates = {"schedulingGates": [{"name": "wait"}]} if is_gated else {}
    return {"claim": f"w{number}", "schedulingGroup": {"podGroupName": "g"}, **gates}


def claims_of(gang: Gang) -> tuple[ResourceClaim, ...]:
    return tuple(claim(f"w{number}", member[0]) for number, member in enumerate(gang[2]))


def world(devices: list[int], in_use: list[int], gang: Gang, *, with_pods: bool = True) -> World:
    least, in_one_rack, members = gang
    names = [f"n{index}" for index in range(len(devices))]
    nodes = tuple(
        node(name, labels={RACK: rack} if rack else {})
        for name, rack in zip(names, RACKS, strict=True)
    )
    claims = tuple(
        held(f"c-{name}", name, *(f"gpu-{n}" for n in range(min(used, total))))
        for name, used, total in zip(names, in_use, devices, strict=True)
        if min(used, total)
    )
    pods = [pod(f"p{n}", **fields_of(n, member)) for n, member in enumerate(members)]
    return cluster(
        dict(zip(names, devices, strict=True)),
        nodes=nodes,
        claims=(*claims, *(claims_of(gang) if with_pods else ())),
        pods=tuple(pods) if with_pods else (),
        pod_groups=(group(least, in_one_rack=in_one_rack),),
    )


class Decided:
    """What the scheduler makes of the pods of a world: nodes, and what it says to those that wait."""

    def __init__(self, there: World) -> None:
        queue, state = Queue(), state_of(there.objects)
        cycle = Cycle(state, queue, lambda: NOW, policy=Policy.BEST, binding_timeout_s=600.0)
        self.nodes: dict[str, str] = {}
        self.said: dict[str, str] = {}
        for each in there.objects.pods:
            if not each.spec.scheduling_gates:
                queue.add(each, state.gangs.key_of(each))
        for _ in range(2 * len(there.objects.pods)):
            decisions = cycle.decide(8)
            for placement in decisions.placements:
                self.nodes[placement.pod.metadata.name] = placement.node
            for refused in decisions.refused:
                message = refused.message
                for each in refused.entry.pods.values():
                    self.said[each.metadata.name] = message


@given(DEVICES, IN_USE, GANGS)
def test_an_explanation_says_what_the_scheduler_says(
    devices: list[int], in_use: list[int], gang: Gang
) -> None:
    """For each member: where it would start, or the same reason in the same words."""
    there = world(devices, in_use, gang)
    decided = Decided(there)
    for each in there.objects.pods:
        name, found = each.metadata.name, explain_pod(there, each)
        if each.spec.scheduling_gates:
            assert found.headline.reason is Reason.GATED
        elif name in decided.nodes:
            assert (found.headline.reason, found.node) == (Reason.FITS, decided.nodes[name])
        else:
            assert str(found.headline) == decided.said[name]
        assert found.gang is not None
        states = {member.pod: member.state for member in found.gang.members}
        assert len(states) == len(there.objects.pods)
    whole = explain_group(there, there.objects.pod_groups[0])
    assert (whole.headline.reason is Reason.FITS) == bool(decided.nodes)


@given(DEVICES, IN_USE, GANGS)
def test_a_plan_starts_as_many_as_are_needed_or_none(
    devices: list[int], in_use: list[int], gang: Gang
) -> None:
    """And those that the scheduler would start, on the same nodes."""
    least, in_one_rack, members = gang
    there = world(devices, in_use, gang, with_pods=False)
    pods = [alone(f"p{n}", **fields_of(n, member)) for n, member in enumerate(members)]
    report = plan(there, wanted(*pods, claims=claims_of(gang)))
    nodes = {made.name: made.node for made in report.pods if made.waits is None}
    assert not nodes or len(nodes) >= least
    if in_one_rack and nodes:
        racks = {RACKS[int(name[1:])] for name in nodes.values()}
        assert len(racks) == 1
        assert racks != {""}
    assert nodes == Decided(world(devices, in_use, gang)).nodes


@given(DEVICES, IN_USE, GANGS)
def test_what_is_said_to_be_impossible_is_so_in_an_empty_cluster(
    devices: list[int], in_use: list[int], gang: Gang
) -> None:
    """If waiting does not help, giving everything back does not help either."""
    there, empty = world(devices, in_use, gang), world(devices, [0] * len(devices), gang)
    for now, then in zip(there.objects.pods, empty.objects.pods, strict=True):
        if explain_pod(there, now).headline.reason.kind is Outlook.NEVER:
            assert explain_pod(empty, then).headline.reason.kind is Outlook.NEVER


@given(DEVICES, IN_USE, GANGS)
def test_each_remedy_lets_the_pod_start(devices: list[int], in_use: list[int], gang: Gang) -> None:
    """Once it is carried out, the gang starts, and the pod is among those that do."""
    there = world(devices, in_use, gang)
    for each in there.objects.pods:
        for remedy in explain_pod(there, each).remedies if not each.spec.scheduling_gates else ():
            after = there.with_objects(apply(there.objects, remedy))
            changed = after.pod("default", each.metadata.name)
            assert changed is not None
            found = explain_pod(after, changed, with_remedies=False)
            assert found.headline.reason is Reason.FITS, remedy.sentence


def test_what_a_gang_is_said_to_need_is_not_what_it_would_take_itself() -> None:
    """Devices that other members would take are not in use."""
    there = world([2, 0, 0, 0, 0], [1, 0, 0, 0, 0], (2, False, [(1, False)] * 2))
    said = explain_pod(there, there.objects.pods[0]).headline
    assert said.reason is Reason.GANG_TOO_LARGE
    assert "of 2 that match, 1 is in use and 1 is taken by other pods of the gang" in said.sentence


def members_of(there: World) -> dict[str, tuple[str, str]]:
    found = explain_pod(there, there.objects.pods[0]).gang
    assert found is not None
    return {member.pod: (member.state, member.node) for member in found.members}


def test_members_are_shown_where_the_most_of_them_fit() -> None:
    there = world([1, 1, 0, 2, 0], [0] * 5, (4, True, [(1, False)] * 4))
    found = members_of(there)
    assert sorted(state for state, _ in found.values()) == ["fits", "fits", "no room", "no room"]
    explained = explain_pod(there, there.objects.pods[0]).gang
    assert explained is not None
    assert [(each.domain, each.holds) for each in explained.domains] == [
        ("rack a", (2,)),
        ("rack b", (2,)),
    ]


def test_a_gang_that_runs_is_said_to_be_somewhere() -> None:
    """The smallest domain that all of it is in, and over how many nodes it is spread."""
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    pods: tuple[Pod, ...] = (pod("p0", nodeName="n2", **ring), pod("p1", nodeName="n3", **ring))
    there = world([0] * 5, [0] * 5, (2, True, []))
    there = cluster(
        {},
        nodes=there.objects.nodes,
        pods=pods,
        pod_groups=there.objects.pod_groups,
    )
    found = explain_pod(there, pods[0])
    assert found.gang is not None
    assert (found.gang.place, found.gang.spread) == ("rack b", {"node": 2})
    whole = explain_group(there, there.objects.pod_groups[0])
    assert whole.headline.sentence == (
        "2 pods of pod group default/g have their nodes in rack b, on 2 nodes."
    )


def test_a_pod_that_would_join_is_said_to_lack_room_where_the_others_are() -> None:
    """The gang has started, and its domain is where it is."""
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    there = world([1, 0, 0, 0, 0], [0] * 5, (1, True, []))
    pods = (pod("p0", nodeName="n2", **ring), pod("p1", claim="w", **ring))
    joined = there.objects.joined(Objects(pods=pods, claims=(claim("w"),)))
    found = explain_pod(there.with_objects(joined), pods[1])
    assert found.headline.reason in (Reason.GANG_SCATTERED, Reason.GANG_OVERSIZED)
    assert "Pod group default/g has started and has to be in one rack." in found.headline.sentence
    assert "embers run in rack b, which holds 0 of 1 that are missing" in found.headline.sentence


def test_a_level_that_no_node_has() -> None:
    """There is no domain of it, in use or not."""
    there = world([1] * 5, [0] * 5, (2, True, [(1, False)] * 2))
    bare = tuple(node(each.metadata.name) for each in there.objects.nodes)
    found = explain_pod(
        there.with_objects(there.objects.joined(Objects(nodes=bare))), there.objects.pods[0]
    )
    assert str(found.headline) == (
        "GangOversized (never): Pod group default/g has to be in one rack."
        f" There is no rack: no node has the label {RACK}."
    )


def test_a_level_that_is_misspelt() -> None:
    """Labels that nodes have and that come near are named."""
    there = world([1] * 5, [0] * 5, (2, True, [(1, False)] * 2))
    labels = {RACK[:-1]: "a"}
    renamed = tuple(node(each.metadata.name, labels=labels) for each in there.objects.nodes)
    objects = there.objects.joined(Objects(nodes=renamed))
    found = explain_pod(there.with_objects(objects), there.objects.pods[0])
    assert found.headline.sentence.endswith(
        f"There is no rack: no node has the label {RACK}; did you mean {RACK[:-1]}?"
    )


def test_levels_that_nodes_do_not_have_are_not_counted() -> None:
    """A level that is preferred and that no node has is no place in which the gang is."""
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    pods: tuple[Pod, ...] = (pod("p0", nodeName="n2", **ring), pod("p1", nodeName="n3", **ring))
    there = world([0] * 5, [0] * 5, (2, True, []))
    preferring = to_dict(there.objects.pod_groups[0])
    preferring["metadata"]["annotations"] = {PREFERRED: "nvidia.com/gpu.clique"}
    groups = (convert(PodGroup, preferring),)
    there = cluster({}, nodes=there.objects.nodes, pods=pods, pod_groups=groups)
    found = explain_pod(there, pods[0]).gang
    assert found is not None
    assert (found.place, found.spread) == ("rack b", {"node": 2})


def test_a_gang_on_one_node_is_on_that_node() -> None:
    """Nothing more is said about how it is spread."""
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    pods: tuple[Pod, ...] = (pod("p0", nodeName="n2", **ring), pod("p1", nodeName="n2", **ring))
    there = world([0] * 5, [0] * 5, (2, True, []))
    there = cluster({}, nodes=there.objects.nodes, pods=pods, pod_groups=there.objects.pod_groups)
    whole = explain_group(there, there.objects.pod_groups[0])
    assert whole.headline.sentence == ("2 pods of pod group default/g have their nodes on node n2.")


def test_a_member_that_no_node_could_take_is_named() -> None:
    """The others fit, and what it lacks is said though that has nothing to do with them."""
    there = world([1] * 5, [0] * 5, (3, True, [(2, False), (1, False), (1, False)]))
    found = explain_pod(there, there.objects.pods[1]).headline
    assert found.reason is Reason.GANG_OVERSIZED
    assert "rack a holds 0 of 1 like p0" in found.sentence
    assert found.sentence.endswith(
        "Claim w0, request gpu wants 2 devices; no node has more than 1 that match."
    )
