"""Room for a pod on a node where other pods are in the way: which of them would have to go.

First, all pods that could go are removed. If the pod then fits, they are restored one by one, in a given order, as long as it still fits;
those that could not be restored have to go. The caller decides which pods could go, in which order they are restored, and which of several
ways is best: a scheduler uses priority and disruption budgets (`preemption`), a person is shown what costs least.

With many pods on a node, and a pod that says much about others, this takes long. So the search is a generator: it yields where a break is
due, and then the state is as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from drayman.api.resource import ResourceClaim
from drayman.placement.nodes import NodeState
from drayman.placement.pauses import completed, never
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial


class Evictable(Protocol):
    """Pods that go together, if they go."""

    def leave(self, trial: Trial) -> None: ...

    def come_back(self, trial: Trial) -> None: ...


P = TypeVar("P", bound=Evictable)
F = TypeVar("F")


class RoomSearch(Struct, Generic[P], frozen=True):
    """A node on which to look for room, and the pods in the way."""

    node: NodeState
    candidates: tuple[P, ...] = ()
    """Those that could go, in the order in which they are restored."""
    leaving: tuple[P, ...] = ()
    """Those that go in any case."""
    unlikely: tuple[P, ...] = ()
    """Candidates that are restored together before the others: probably none of them is in the way."""
    needed_by: Mapping[int, int] = {}
    """For candidates that are not restored without another one: that other one. Both by `id`."""


class Way(Struct, Generic[P, F], frozen=True):
    """Which pods have to leave a node, and what the pod then gets there."""

    node: NodeState
    victims: tuple[P, ...]
    leaving: tuple[P, ...]
    """Those that leave anyway."""
    found: F
    freed: tuple[ResourceClaim, ...]
    """The claims that give back their devices when all of them are gone."""


def ways(
    state: ClusterState,
    attempts: Iterable[RoomSearch[P]],
    fits: Callable[[NodeState], F | None],
    unused: Iterable[ResourceClaim] = (),
) -> Iterator[Way[P, F]]:
    """The attempts that succeed, one after the other. `fits` returns what the pod gets on a node in the current state.

    `unused` are claims that are about to give back their devices because no pod uses them any more.
    """
    for attempt in attempts:
        way = completed(find_way(state, attempt, fits, unused))
        if way is not None:
            yield way


def find_way(
    state: ClusterState,
    attempt: RoomSearch[P],
    fits: Callable[[NodeState], F | None],
    unused: Iterable[ResourceClaim] = (),
    is_due: Callable[[], bool] = never,
) -> Generator[None, None, Way[P, F] | None]:
    """Look for room on one node. None if there is none, or the node has gone during a break."""
    victims = {id(each): each for each in attempt.candidates}
    groups = deque([attempt.unlikely, *((each,) for each in attempt.candidates)])
    found: F | None = None
    while True:
        node = state.nodes.get(attempt.node.facts.name)
        if node is None:
            return None
        with state.trial() as trial:
            for claim in unused:
                trial.free(claim)
            for each in (*attempt.leaving, *victims.values()):
                each.leave(trial)
            if found is None:
                found = fits(node)
            if found is None:
                return None
            while groups:
                spared = [
                    each
                    for each in groups.popleft()
                    if id(each) in victims and attempt.needed_by.get(id(each)) not in victims
                ]
                still = _still_fits(trial, node, spared, fits) if spared else None
                if still is not None:
                    found = still
                    for each in spared:
                        del victims[id(each)]
                if is_due():
                    break
            if not groups:
                return Way(node, tuple(victims.values()), attempt.leaving, found, trial.freed)
        yield


def _still_fits(
    trial: Trial, node: NodeState, spared: list[P], fits: Callable[[NodeState], F | None]
) -> F | None:
    """What the pod gets if some of the others stay. If it gets nothing, they leave again."""
    for each in spared:
        each.come_back(trial)
    still = fits(node)
    if still is None:
        for each in spared:
            each.leave(trial)
    return still
