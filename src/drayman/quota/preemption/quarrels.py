"""Who gave way to whom, so that workloads do not drive each other out for ever.

Each queue has its own rule for whom it may drive out: priority, its own quota, shares. Put together, these need not make an order: a may
come before b by one, b before c by another, and c before a by a third. Followed blindly, quota then goes round in a circle and nothing
ever runs. Two rules bring that to rest, and change nothing where it would come to rest by itself:

- Who was driven out does not take back what the other one needs while that is still waiting for it, even where it would come first.
- Nobody drives out the same workload a second time if it has had to give way to that one in between, itself or through others: the circle
  was gone round once.

Whenever something changes from outside (a workload comes, ends or changes, or quota does), what was is forgotten, because all may be
otherwise.
"""

from __future__ import annotations


class Quarrels:
    """The record of preemptions since something last changed from outside. Workloads are named by key."""

    def __init__(self) -> None:
        self._gave_way: dict[str, str] = {}
        """To whom those last gave way who wait."""
        self._taken: set[tuple[str, str]] = set()

    def drove_out(self, by: str, victim: str) -> None:
        """A workload had to give up its quota for another."""
        self._taken.add((by, victim))
        self._gave_way[victim] = by
        if self._gave_way.get(by) == victim:
            del self._gave_way[by]

    def has_quota(self, key: str) -> None:
        """A workload waits no longer."""
        self._gave_way.pop(key, None)

    def gave_way_to(self, key: str) -> str:
        """Who drove out a workload that waits; empty if nobody did."""
        return self._gave_way.get(key, "")

    def may_take(self, by: str, victim: str) -> bool:
        """Whether it would not be the same circle again."""
        if (by, victim) not in self._taken:
            return True
        seen: set[str] = set()
        key = by
        while key and key not in seen:
            seen.add(key)
            key = self._gave_way.get(key, "")
            if key == victim:
                return False
        return True

    def forget(self) -> None:
        """Something has changed from outside."""
        self._gave_way.clear()
        self._taken.clear()
