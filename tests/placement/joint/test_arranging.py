"""Places for several pods at once, against every distribution of the pods over the nodes."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Plan, Policy, search
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.demand import Demand
from drayman.placement.joint.arranging import Arranger
from drayman.placement.joint.seating import Seats
from drayman.placement.state import ClusterState
from drayman.placement.world import state_of
from oracle.build import device, exactly, first_available, partitioned
from simulate.cluster import NOW, claim, cluster, node, pod


def arrange(state: ClusterState, pods: list[Pod], least: int | None = None) -> Seats | None:
    round_ = Decider(state).round(NOW)
    arranger = Arranger(round_, Policy.BEST)
    demands = [round_.demand(each) for each in pods]
    found = arranger.arrange(
        demands, len(pods) if least is None else least, list(state.nodes.values())
    )
    assert not arranger.gave_up
    if found is not None:
        carry_out(round_, found)
    return found


def carry_out(round_: Round, seats: Seats) -> None:
    """What was found in a trial holds afterwards: the ledger refuses what it has not."""
    with round_.decider.state.trial():
        for seat in seats:
            round_.suppose(seat.demand, seat.found)


def nodes_of(seats: Seats | None) -> dict[str, str]:
    assert seats is not None
    return {seat.demand.pod.metadata.name: seat.found.node.facts.name for seat in seats}


def exists_any(state: ClusterState, pods: list[Pod]) -> bool:
    """Whether some distribution of the pods works, by trying all of them."""
    round_ = Decider(state).round(NOW)
    demands = [round_.demand(each) for each in pods]
    names = list(state.nodes)
    return any(
        all(_fits(state, name, [d for d, at in zip(demands, where, strict=True) if at == name])
            for name in names)
        for where in product(names, repeat=len(pods))
    )  # fmt: skip


def _fits(state: ClusterState, name: str, demands: list[Demand]) -> bool:
    home = state.nodes[name]
    shape = home.facts.shape
    if sum(demand.needs.shape.cpu for demand in demands) > shape.cpu - home.usage.cpu:
        return False
    claims = [c for demand in demands for c in demand.open]
    return not claims or isinstance(search(state.view(home), claims), Plan)


HALVES = "halves"


def whole_else_half(name: str = HALVES) -> ResourceClaimTemplate:
    spec = {
        "devices": {
            "requests": [
                first_available("gpu", exactly("whole", cls="whole"), exactly("half", cls="half"))
            ]
        }
    }
    for sub in spec["devices"]["requests"][0]["firstAvailable"]:
        sub.update(sub.pop("exactly", {}))
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(ResourceClaimTemplate, {"metadata": metadata, "spec": {"spec": spec}})


def divisible(number: int, home: str) -> list[ResourceSlice]:
    """Devices that are used as a whole or as two halves."""
    parts: list[dict[str, Any]] = []
    counters: dict[str, Any] = {}
    for n in range(number):
        counters[f"set{n}"] = {"slots": 2}
        for part, slots in (("whole", 2), ("half-0", 1), ("half-1", 1)):
            kind = {"kind": {"string": part.split("-")[0]}}
            spends = {f"set{n}": {"slots": slots}}
            parts.append(device(f"gpu{n}-{part}", spends=spends, attributes=kind))
    made = partitioned(parts, counters, pool=home, nodeName=home)
    return [convert(ResourceSlice, each) for each in made]


def of_kind(kind: str) -> DeviceClass:
    expression = f'device.attributes["gpu.example.com"].kind == "{kind}"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return convert(DeviceClass, {"metadata": {"name": kind}, "spec": spec})


KINDS = st.sampled_from(["", "one", "two", "three", HALVES])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=3),
    st.lists(st.tuples(KINDS, st.integers(1, 3)), min_size=1, max_size=4),
)
def test_it_refuses_only_what_no_distribution_makes_possible(
    homes: list[tuple[int, int]], wishes: list[tuple[str, int]]
) -> None:
    names = [f"n{n}" for n in range(len(homes))]
    world = cluster(
        {name: plain for name, (plain, _) in zip(names, homes, strict=True)},
        nodes=tuple(node(name, cpu="4") for name in names),
        slices=tuple(
            each
            for name, (_, parts) in zip(names, homes, strict=True)
            for each in divisible(parts, f"{name}-parts")
            if parts
        ),
        classes=(of_kind("whole"), of_kind("half")),
        templates=(whole_else_half(),),
    )
    state = state_of(world.objects)
    pods = [pod(f"p{n}", kind, cpu=str(cpu)) for n, (kind, cpu) in enumerate(wishes)]
    assert (arrange(state, pods) is not None) == exists_any(state, pods)


def test_a_whole_device_is_given_up_for_a_half() -> None:
    world = cluster(
        {"a": 0},
        slices=tuple(divisible(2, "a")),
        classes=(of_kind("whole"), of_kind("half")),
        templates=(whole_else_half(),),
    )
    pods = [pod(f"p{n}", HALVES) for n in range(4)]
    assert arrange(state_of(world.objects), pods) is not None


def test_an_early_pod_makes_way_for_one_that_fits_nowhere_else() -> None:
    state = state_of(cluster({"a": 2, "b": 1}).objects)
    found = nodes_of(arrange(state, [pod("small", "one"), pod("large", "two")]))
    assert found == {"small": "b", "large": "a"}


def test_pods_share_few_nodes() -> None:
    state = state_of(cluster({"a": 2, "b": 4, "c": 4, "d": 3}).objects)
    found = nodes_of(arrange(state, [pod(f"p{n}", "one") for n in range(7)]))
    assert sorted(set(found.values())) == ["b", "d"]


def test_as_many_as_possible_are_placed_if_not_all_have_to() -> None:
    state = state_of(cluster({"a": 2, "b": 1}).objects)
    pods = [pod(f"p{n}", "one") for n in range(5)]
    assert len(nodes_of(arrange(state, pods, least=2))) == 3
    assert arrange(state, pods, least=4) is None


def test_pods_that_avoid_each_other_are_placed_step_by_step() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "s"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    apart: dict[str, Any] = {
        "affinity": {"podAntiAffinity": required},
        "metadata": {"labels": {"app": "s"}},
    }
    state = state_of(cluster({"a": 2, "b": 1, "c": 1}).objects)
    large = pod("large", "two", **apart)
    small = [pod(f"small{n}", "one", **apart) for n in range(2)]
    found = nodes_of(arrange(state, [*small, large]))
    assert found["large"] == "a"
    assert len(set(found.values())) == 3
    assert arrange(state, [*small, large, pod("more", "", **apart)]) is None


def test_pods_that_share_a_claim_go_where_it_is() -> None:
    shared: tuple[ResourceClaim, ...] = (claim("c", 2),)
    state = state_of(cluster({"a": 1, "b": 3}, claims=shared).objects)
    pods = [pod("p0", claim="c"), pod("p1", "one", claim="c"), pod("p2", "one")]
    found = nodes_of(arrange(state, pods))
    assert found == {"p0": "b", "p1": "b", "p2": "a"}
