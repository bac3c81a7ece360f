"""Attributes and capacities that a selector reads and no device of the cluster has: the usual cause of a selector that accepts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.allocator.problem.focus import selectors_of
from drayman.cel.reads import Group as ReadGroup
from drayman.inventory.hardware import NodeHardware
from drayman.placement.demand import Demand
from drayman.placement.refusing import Shortage
from drayman.placement.state import ClusterState


def unknown_name(state: ClusterState, demand: Demand, shortage: Shortage | None) -> str:
    """Such a name and its kind, read by a selector of this request that accepts no device; empty if there is none."""
    hardware = all_hardware(state)
    for expression in _selectors(state, demand, shortage):
        if any(each.select((expression,))[0] for each in hardware):
            continue
        reads = state.inventory.reads(expression)
        for name in _names(reads.attributes):
            if not any(each.attribute(name).present for each in hardware):
                return f"attribute {name}"
        for name in _names(reads.capacity):
            if not any(_has_capacity(each, name) for each in hardware):
                return f"capacity {name}"
    return ""


def all_hardware(state: ClusterState) -> list[NodeHardware]:
    """The hardware that nodes can use, each once, however many nodes can use it."""
    views = (state.view(node) for node in state.nodes.values())
    return list(dict.fromkeys(part.hardware for view in views for part in view.parts))


def _selectors(state: ClusterState, demand: Demand, shortage: Shortage | None) -> Iterator[str]:
    """The selectors of a request, or of all of them if it is not known which one is at fault."""
    node = next(iter(state.nodes.values()))
    question = demand.on(node.facts).question
    wanted = [w for request in question.requests for w in request.alternatives]
    for each, selectors in zip(wanted, selectors_of(state.view(node), question), strict=True):
        if shortage is None or (each.claim, each.name) == (shortage.claim, shortage.request):
            yield from selectors or ()


def _names(group: ReadGroup) -> Iterator[str]:
    return (f"{domain}/{name}" for domain, name in sorted(group.keys))


def _has_capacity(hardware: NodeHardware, name: str) -> bool:
    """Names without a domain are in the driver's domain."""
    return any(
        name in (capacity.name, f"{record.id.driver}/{capacity.name}")
        for record in hardware.records
        for capacity in record.capacities
    )
