"""The one ledger of quota: who uses what, in the tree and in the domains of topologies. Every change can be undone exactly.

`with ledger.trial():` lets a search suppose anything and takes back all of it on leaving, by restoring each number as it was. Trials nest.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from msgspec import Struct

from drayman.inventory.undo import UndoLog
from drayman.quota.amounts import Amounts, FlavorResource
from drayman.quota.demands import Placement
from drayman.quota.topology.cluster import ClusterTopologies
from drayman.quota.tree.nodes import FlavorAmounts, Node


class Usage(Struct, frozen=True):
    """What a workload uses, or would use."""

    quota: FlavorAmounts
    places: tuple[tuple[Placement, Amounts], ...] = ()
    """Where its pods are in topologies, and what each of them takes there."""


class Ledger:
    """Adds and removes usage. Trees may come and go; what is used is written into their nodes."""

    def __init__(self, *, balances_places: bool = False) -> None:
        """`balances_places`: whether pods are spread evenly over the domains of a topology."""
        self._log = UndoLog()
        self.topologies = ClusterTopologies(self._log, is_balanced=balances_places)

    def add(self, queue: Node, usage: Usage) -> None:
        for what, amount in usage.quota.items():
            self._add(queue, what, amount)
        if usage.places:
            self.topologies.add(usage.places)

    def remove(self, queue: Node, usage: Usage) -> None:
        for what, amount in usage.quota.items():
            self._remove(queue, what, amount)
        if usage.places:
            self.topologies.remove(usage.places)

    def trial(self) -> AbstractContextManager[None]:
        """Take back at the end whatever is done inside."""
        return self._log.undone()

    def _add(self, node: Node, what: FlavorResource, amount: int) -> None:
        """Only what exceeds the node's free local part is seen by its parent."""
        place: Node | None = node
        while place is not None and amount > 0:
            local = place.local_available(what)
            self._write(place, what, amount)
            amount -= local
            place = place.parent

    def _remove(self, node: Node, what: FlavorResource, amount: int) -> None:
        place: Node | None = node
        while place is not None and amount > 0:
            beyond = place.usage.get(what, 0) - place.local.get(what, 0)
            self._write(place, what, -amount)
            amount = min(amount, beyond)
            place = place.parent

    def _write(self, node: Node, what: FlavorResource, change: int) -> None:
        usage = node.usage
        self._log.put(usage, what, usage.get(what, 0) + change)
