"""Room for a pod on a node where others are in the way: which of them would have to go.

Everybody is thought away who could go. If the pod fits then, they are given back one by one, in a given order, as long as it still fits;
who could not be given back has to go. Who could go, in which order they are given back, and which of several ways is the best is for
the asker to say: a scheduler goes by priority and disruption budgets (`preemption`), a person is shown what costs least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from drayman.api.resource import ResourceClaim
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial


class Party(Protocol):
    """Those who go together, if they go."""

    def leave(self, trial: Trial) -> None: ...

    def come_back(self, trial: Trial) -> None: ...


P = TypeVar("P", bound=Party)
F = TypeVar("F")


class RoomSearch(Struct, Generic[P], frozen=True):
    """A node on which room is to be looked for, and those in the way."""

    node: NodeState
    candidates: tuple[P, ...] = ()
    """Those who could go, in the order in which they are given back."""
    leaving: tuple[P, ...] = ()
    """Those who go in any case."""
    unlikely: tuple[P, ...] = ()
    """Those of the candidates who are given back together before the others: probably none of them is in the way."""


class Way(Struct, Generic[P, F], frozen=True):
    """Who has to leave a node, and what the pod gets there then."""

    node: NodeState
    victims: tuple[P, ...]
    leaving: tuple[P, ...]
    """Those who go without being asked."""
    found: F
    freed: tuple[ResourceClaim, ...]
    """The claims that give back their devices when all of them are gone."""


def ways(
    state: ClusterState,
    attempts: Iterable[RoomSearch[P]],
    fits: Callable[[NodeState], F | None],
    unused: Iterable[ResourceClaim] = (),
) -> Iterator[Way[P, F]]:
    """The attempts that succeed, one after the other. `fits` tells what the pod gets on a node as things are then.

    `unused` are claims that are about to give back their devices, since no pod that uses them is left.
    """
    for attempt in attempts:
        way = _way(state, attempt, fits, unused)
        if way is not None:
            yield way


def _way(
    state: ClusterState,
    attempt: RoomSearch[P],
    fits: Callable[[NodeState], F | None],
    unused: Iterable[ResourceClaim],
) -> Way[P, F] | None:
    node = attempt.node
    with state.trial() as trial:
        for claim in unused:
            trial.free(claim)
        for party in (*attempt.leaving, *attempt.candidates):
            party.leave(trial)
        found = fits(node)
        if found is None:
            return None
        victims = {id(party): party for party in attempt.candidates}
        for group in (attempt.unlikely, *((party,) for party in attempt.candidates)):
            spared = [party for party in group if id(party) in victims]
            if not spared:
                continue
            for party in spared:
                party.come_back(trial)
            still = fits(node)
            if still is None:
                for party in spared:
                    party.leave(trial)
            else:
                found = still
                for party in spared:
                    del victims[id(party)]
        return Way(node, tuple(victims.values()), attempt.leaving, found, trial.freed)
