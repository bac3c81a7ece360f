"""What the pods of a node use of it, and whether one more fits.

Sums are kept, never recomputed. They are integers, so taking a pod away is the exact inverse of adding it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from drayman.placement.fit.needs import PodNeeds, PodShape
from drayman.placement.fit.node import NodeFacts, NodeShape
from drayman.placement.fit.ports import UsedPorts
from drayman.placement.fit.requests import CPU, MEMORY, STORAGE
from drayman.placement.fit.verdict import (
    FITS,
    NO_FREE_PORTS,
    TOO_MANY_PODS,
    Cause,
    Verdict,
    insufficient,
)

NOTHING: Final[frozenset[str]] = frozenset()


class NodeUsage:
    """The pods of a node and what they use."""

    __slots__ = (
        "cpu",
        "extended",
        "memory",
        "pods",
        "ports",
        "scoring_cpu",
        "scoring_memory",
        "storage",
    )

    def __init__(self) -> None:
        self.cpu = 0
        self.memory = 0
        self.storage = 0
        self.extended: dict[str, int] = {}
        self.scoring_cpu = 0
        self.scoring_memory = 0
        self.ports = UsedPorts()
        self.pods: dict[str, PodNeeds] = {}

    def add(self, needs: PodNeeds) -> None:
        """Count a pod in. Raises ValueError if it is counted already."""
        if needs.uid in self.pods:
            raise ValueError(f"pod {needs.namespace}/{needs.name} is counted on this node already")
        self.pods[needs.uid] = needs
        self._count(needs.shape, 1)
        if needs.shape.ports:
            self.ports.add(needs.shape.ports)

    def remove(self, uid: str) -> PodNeeds:
        """Count a pod out, by its uid. Raises ValueError if it is not counted."""
        needs = self.pods.pop(uid, None)
        if needs is None:
            raise ValueError(f"no pod with uid {uid!r} is counted on this node")
        self._count(needs.shape, -1)
        if needs.shape.ports:
            self.ports.remove(needs.shape.ports)
        return needs

    def _count(self, pod: PodShape, sign: int) -> None:
        self.cpu += sign * pod.cpu
        self.memory += sign * pod.memory
        self.storage += sign * pod.storage
        self.scoring_cpu += sign * pod.scoring_cpu
        self.scoring_memory += sign * pod.scoring_memory
        for name, amount in pod.extended:
            total = self.extended.get(name, 0) + sign * amount
            if total:
                self.extended[name] = total
            else:
                del self.extended[name]

    @property
    def room_key(self) -> Hashable:
        """Equal for nodes with the same room, given equal shapes."""
        return (
            (len(self.pods), self.cpu, self.memory, self.storage),
            (self.scoring_cpu, self.scoring_memory),
            frozenset(self.extended.items()),
            self.ports.taken(),
        )


def usage_verdict(
    needs: PodNeeds, facts: NodeFacts, usage: NodeUsage, delegated: frozenset[str] = NOTHING
) -> Verdict:
    """Whether ports and resources are left for a pod. `delegated` are the resources that devices provide on this node."""
    pod, node = needs.shape, facts.shape
    if pod.ports and usage.ports.conflict(pod.ports):
        return Verdict.refusal(Cause.PORTS, NO_FREE_PORTS, resolvable=True)
    if (
        len(usage.pods) < node.pods
        and (not pod.cpu or pod.cpu <= node.cpu - usage.cpu)
        and (not pod.memory or pod.memory <= node.memory - usage.memory)
        and (not pod.storage or pod.storage <= node.storage - usage.storage)
        and not pod.extended
    ):
        return FITS
    return _shortage(pod, node, usage, delegated)


def usage_room(
    needs: PodNeeds,
    facts: NodeFacts,
    usage: NodeUsage,
    most: int,
    delegated: frozenset[str] = NOTHING,
) -> int:
    """How many pods with these needs ports and resources are left for, if at most so many are wanted."""
    pod, node = needs.shape, facts.shape
    if pod.ports:
        if usage.ports.conflict(pod.ports):
            return 0
        most = min(most, 1)
    most = min(most, node.pods - len(usage.pods))
    for _, asked, used, there in _amounts(pod, node, usage, delegated):
        if asked:
            most = min(most, (there - used) // asked)
    return max(0, most)


def _shortage(
    pod: PodShape, node: NodeShape, usage: NodeUsage, delegated: frozenset[str]
) -> Verdict:
    """All resources that are short, together. If even the empty node is too small, evicting pods does not help."""
    amounts = _amounts(pod, node, usage, delegated)
    reasons = [] if len(usage.pods) < node.pods else [TOO_MANY_PODS]
    resolvable = True
    for name, asked, used, there in amounts:
        if asked and asked > there - used:
            reasons.append(insufficient(name))
            resolvable = resolvable and asked <= there
    if not reasons:
        return FITS
    return Verdict.refusal(Cause.RESOURCES, *reasons, resolvable=resolvable)


def _amounts(
    pod: PodShape, node: NodeShape, usage: NodeUsage, delegated: frozenset[str]
) -> list[tuple[str, int, int, int]]:
    """Of each resource, what a pod asks for, what is used and what there is."""
    found = [
        (CPU, pod.cpu, usage.cpu, node.cpu),
        (MEMORY, pod.memory, usage.memory, node.memory),
        (STORAGE, pod.storage, usage.storage, node.storage),
    ]
    found += [
        (name, amount, usage.extended.get(name, 0), node.extended.get(name, 0))
        for name, amount in pod.extended
        if name not in delegated
    ]
    return found
