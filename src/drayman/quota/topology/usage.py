"""What workloads hold in the domains of a topology, kept up to date and undone exactly.

Admission tries things out: the places of earlier pod sets of a workload, the cluster without some victims. So every change can be undone
(`trial`), and each leaves a note of the domain that it is about, so that counts are renewed for those domains alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from drayman.inventory.undo import UndoLog
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import Amounts
from drayman.quota.demands import Domain, Placement
from drayman.quota.topology.notes import Notes


class DomainUsage(Mapping[Domain, Amounts]):
    """What is held in each lowest domain in which anything is, `pods` included."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._held: dict[Domain, Amounts] = {}
        self.notes: Notes[Domain] = Notes()

    def __getitem__(self, domain: Domain) -> Amounts:
        return self._held[domain]

    def __iter__(self) -> Iterator[Domain]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, placement: Placement, per_pod: Amounts) -> None:
        """Pods that each ask for so much have these places now."""
        for domain, count in placement.domains:
            self._change(domain, per_pod, count)

    def remove(self, placement: Placement, per_pod: Amounts) -> None:
        """The inverse of `add`."""
        for domain, count in placement.domains:
            self._change(domain, per_pod, -count)

    def trial(self) -> AbstractContextManager[None]:
        """A context that undoes all changes made within it when it ends."""
        return self._log.undone()

    def _change(self, domain: Domain, per_pod: Amounts, count: int) -> None:
        after = dict(self._held.get(domain, {}))
        for name, amount in (*per_pod.items(), (PODS, 1)):
            total = after.get(name, 0) + amount * count
            if total:
                after[name] = total
            else:
                after.pop(name, None)
        self._put(domain, after)

    def _put(self, domain: Domain, held: Amounts) -> None:
        self._log.note(self._put, domain, self._held.get(domain, {}))
        if held:
            self._held[domain] = held
        else:
            self._held.pop(domain, None)
        self.notes.add(domain)
