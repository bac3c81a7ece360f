"""What a gang needs as a whole by the word of its author, held against what is free in the whole cluster.

This is a first look and no more: what the pods ask for decides whether they fit. It keeps a gang from starting with its quorum where there
is not enough for those that are to come, which is what such a statement is for. What members already use counts as free for them.

A resource that devices serve is left out: how many of them are free depends on what pods ask for, which the search knows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from msgspec import Struct

from drayman.api.quantity import Quantity
from drayman.placement.fit.needs import PodShape
from drayman.placement.fit.requests import CPU, MEMORY, PODS, STORAGE, in_units
from drayman.placement.gangs.gang import Gang
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState

_UNITS: Final = {CPU: 1000}


class Scarce(Struct, frozen=True):
    """A resource of which less is free than a gang is said to need."""

    resource: str
    wants: Quantity
    free: Quantity
    there_is: Quantity
    """With nothing in use."""


def scarce(state: ClusterState, gang: Gang) -> Scarce | None:
    """The first resource of which there is not enough."""
    for name in sorted(gang.least_resources):
        wants = gang.least_resources[name]
        if state.extended.class_of(name) is not None:
            continue
        own = _used_by(state, gang, name)
        offered = {node: _offered(each, name) for node, each in state.nodes.items()}
        free = sum(
            max(0, amount - _used(state.nodes[node], name) + own.get(node, 0))
            for node, amount in offered.items()
        )
        if free < in_units(name, wants.amount):
            there_is = sum(offered.values())
            return Scarce(
                name, wants, _quantity(free, name, wants), _quantity(there_is, name, wants)
            )
    return None


def _used_by(state: ClusterState, gang: Gang, name: str) -> dict[str, int]:
    """What members use, by node."""
    used: dict[str, int] = {}
    for member in state.gangs.placed(gang.key).values():
        node = state.nodes.get(member.node)
        needs = None if node is None else node.usage.pods.get(member.uid)
        if needs is not None:
            used[member.node] = used.get(member.node, 0) + _asked(needs.shape, name)
    return used


def _offered(node: NodeState, name: str) -> int:
    shape = node.facts.shape
    known = {CPU: shape.cpu, MEMORY: shape.memory, STORAGE: shape.storage, PODS: shape.pods}
    return known[name] if name in known else shape.extended.get(name, 0)


def _used(node: NodeState, name: str) -> int:
    usage = node.usage
    known = {
        CPU: usage.cpu,
        MEMORY: usage.memory,
        STORAGE: usage.storage,
        PODS: len(usage.pods),
    }
    return known[name] if name in known else usage.extended.get(name, 0)


def _asked(shape: PodShape, name: str) -> int:
    known = {CPU: shape.cpu, MEMORY: shape.memory, STORAGE: shape.storage, PODS: 1}
    return known[name] if name in known else dict(shape.extended).get(name, 0)


def _quantity(amount: int, name: str, like: Quantity) -> Quantity:
    exact = Fraction(amount, _UNITS.get(name, 1))
    return Quantity(exact.numerator if exact.denominator == 1 else exact, like.format)
