"""How fast something is used: two samples of what has been used become amounts and the time between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.node.streams.use import ContainerKey, NodeUse, Use

_MS: Final = 1000


class Rate(Struct, frozen=True):
    """What was used in a time."""

    nano_cpu: int
    """CPUs on average, in billionths."""
    memory: int
    """Bytes, at the end of the time."""
    window_ms: int
    at_ms: int


class NodeRates(Struct, frozen=True):
    node: Rate | None
    containers: Mapping[ContainerKey, Rate]


def rate(before: Use | None, after: Use | None) -> Rate | None:
    """None if the samples do not belong together: one is missing, no time has passed, or a counter has begun anew."""
    if before is None or after is None:
        return None
    window = after.at_ms - before.at_ms
    spent = after.cpu_s - before.cpu_s
    if window <= 0 or spent < 0:
        return None
    return Rate(round(spent * _MS / window * 1e9), after.memory, window, after.at_ms)


def rates(before: NodeUse, after: NodeUse) -> NodeRates:
    """Of a node and of those of its containers that are in both samples."""
    found = {key: rate(before.containers.get(key), use) for key, use in after.containers.items()}
    containers = {key: each for key, each in found.items() if each is not None}
    return NodeRates(rate(before.node, after.node), containers)
