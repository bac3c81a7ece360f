"""Cycle after cycle until nothing changes any more.

It always comes to an end. Starting alone ends, because pods run out; so a state can only return if somebody was evicted in between. Then
the evictions came to nothing, and the groups that they were for are barred: nobody is evicted for them any more. There are only so many
groups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from drayman.placement.queueing.queues import Amount
from drayman.quota.shares.accounts import Accounts
from drayman.quota.shares.cycle import Action, Actions, Memory, cycle

Opening: TypeAlias = Callable[[Mapping[str, str]], Accounts]
"""The accounts of the cluster in which pods run on these nodes."""
_Likeness: TypeAlias = frozenset[tuple[tuple[str, str, str], Amount]]


@dataclass(frozen=True, slots=True)
class AtRest:
    """The cluster at rest."""

    placement: Mapping[str, str]
    evictions: Mapping[str, Mapping[Action, int]]
    """How often pods of each group were evicted."""
    cycles: tuple[Actions, ...]
    """Those that did something, and the last one, which did not."""


def settle(opening: Opening, running: Mapping[str, str], memory: Memory, now: float) -> AtRest:
    """Decide again and again. Pods that are evicted are gone at once, and wait again; no time goes by."""
    return _Settling(opening, dict(running), memory, now).run()


@dataclass(slots=True)
class _Settling:
    opening: Opening
    running: dict[str, str]
    memory: Memory
    now: float
    done: list[Actions] = field(default_factory=list)
    seen: dict[_Likeness, int] = field(default_factory=dict)
    evictions: dict[str, Counter[Action]] = field(default_factory=dict)

    def run(self) -> AtRest:
        while True:
            accounts = self.opening(self.running)
            self._bar_what_came_to_nothing(accounts)
            actions = cycle(accounts, self.memory, self.now)
            self.done.append(actions)
            if actions.is_at_rest:
                return AtRest(self.running, self.evictions, tuple(self.done))
            self.memory = actions.memory
            gone = {each.worker for each in actions.evicted}
            for each in actions.evicted:
                group = accounts.worker(each.worker).group
                self.evictions.setdefault(group, Counter())[each.action] += 1
            everybody = {**self.running, **actions.bound}
            self.running = {name: node for name, node in everybody.items() if name not in gone}

    def _bar_what_came_to_nothing(self, accounts: Accounts) -> None:
        likeness = _likeness(accounts, self.running)
        before = self.seen.get(likeness)
        self.seen[likeness] = len(self.done)
        if before is None:
            return
        since = self.done[before:]
        barred = {each.beneficiary for actions in since for each in actions.evicted}
        self.memory = replace(self.memory, barred=self.memory.barred | (barred - {""}))


def _likeness(accounts: Accounts, running: Mapping[str, str]) -> _Likeness:
    """Equal for states in which as many pods of each kind are on each node, whichever they are."""
    counts: defaultdict[tuple[str, str, str], Amount] = defaultdict(int)
    for name, node in running.items():
        worker = accounts.worker(name)
        counts[worker.group, worker.part, node] += worker.amount
    return frozenset(counts.items())
