"""Small topologies: blocks of racks of hosts, and pods that ask for one processor each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drayman.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from drayman.api.kueue_workload import TopologyRequest
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.flavor import FlavorTopology

BLOCK = "example.com/block"
RACK = "example.com/rack"
HOST = "kubernetes.io/hostname"
LEVELS = (BLOCK, RACK, HOST)
FLAVOR = {"pool": "tas"}

Racks = Mapping[str, Sequence[int]]
"""The processors of each host, by rack."""


def node(
    name: str,
    cpu: int,
    labels: Mapping[str, str],
    *,
    ready: str = "True",
    unschedulable: bool = False,
    taints: tuple[Taint, ...] = (),
    pods: int = 110,
) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={**FLAVOR, HOST: name, **labels}),
        spec=NodeSpec(unschedulable=unschedulable, taints=taints),
        status=NodeStatus(
            allocatable={"cpu": Quantity(cpu), "pods": Quantity(pods)},
            conditions=(NodeCondition(type_="Ready", status=ready),),
        ),
    )


def topology(
    blocks: Mapping[str, Racks], *, levels: Sequence[str] = LEVELS, is_balanced: bool = False
) -> FlavorTopology:
    """A topology whose hosts are called after their rack: r0-0, r0-1, ..."""
    found = FlavorTopology("t", levels, FLAVOR, is_balanced=is_balanced)
    for block, racks in blocks.items():
        for rack, hosts in racks.items():
            for number, cpu in enumerate(hosts):
                found.set_node(node(f"{rack}-{number}", cpu, {BLOCK: block, RACK: rack}), {})
    return found


def demand(
    count: int,
    request: TopologyRequest | None = None,
    *,
    name: str = "main",
    cpu: int = 1,
    **more: object,
) -> TopologyDemand:
    return TopologyDemand(
        name,
        count,
        {"cpu": cpu * 1000},
        more.get("node_selector", {}),  # type: ignore[arg-type]
        None,
        more.get("tolerations", ()),  # type: ignore[arg-type]
        request or TopologyRequest(unconstrained=True),
    )


def pods_on(placement: Placement) -> dict[str, int]:
    """The pods of each host."""
    return {domain[-1]: count for domain, count in placement.domains}


def placed(found: FlavorTopology, *demands: TopologyDemand) -> dict[str, int]:
    """Where the pods of a single set go."""
    result = found.place(demands, {})
    assert not isinstance(result, NotPlaced), result.message
    return pods_on(result[demands[0].pod_set])


def refused(found: FlavorTopology, *demands: TopologyDemand) -> str:
    result = found.place(demands, {})
    assert isinstance(result, NotPlaced)
    return result.message
