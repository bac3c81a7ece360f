"""Who gave way to whom, so that workloads do not drive each other out for ever.

Each queue has its own rule for whom it may drive out: priority, its own quota, shares. Put together, these need not make an order: a may
come before b by one, b before c by another, and c before a by a third. Followed blindly, quota then goes round in a circle and nothing
ever runs. Two rules bring that to rest, and change nothing where it would come to rest by itself:

- Who was driven out does not take back what the other one needs while that is still waiting for it, even where it would come first.
- Nobody drives out the same workloads a second time. There are only so many sets of workloads, so it has an end.

Whenever something changes from outside (a workload comes, ends or changes, or quota does), what was is forgotten, because all may be
otherwise.
"""

from __future__ import annotations


class Quarrels:
    """The record of preemptions since something last changed from outside. Workloads are named by key."""

    def __init__(self) -> None:
        self._gave_way: dict[str, str] = {}
        """To whom those last gave way who wait."""
        self._taken: set[tuple[str, frozenset[str]]] = set()

    def drove_out(self, by: str, victims: frozenset[str]) -> None:
        """Workloads had to give up their quota for another."""
        if victims:
            self._taken.add((by, victims))
        for victim in victims:
            self._gave_way[victim] = by
        if self._gave_way.get(by) in victims:
            del self._gave_way[by]

    def has_quota(self, key: str) -> None:
        """A workload waits no longer."""
        self._gave_way.pop(key, None)

    def gave_way_to(self, key: str) -> str:
        """Who drove out a workload that waits; empty if nobody did."""
        return self._gave_way.get(key, "")

    def may_drive_out(self, by: str, victims: frozenset[str]) -> bool:
        """Whether it would not be the same once more."""
        return (by, victims) not in self._taken

    def forget(self) -> None:
        """Something has changed from outside."""
        self._gave_way.clear()
        self._taken.clear()
