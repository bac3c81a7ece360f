"""Room that is kept for pods: because others are evicted for them (`status.nominatedNodeName` states it), or for admitted workloads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_terminating
from drayman.explain.gang import Gangs
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting
from drayman.placement.nominations import Nominations
from drayman.placement.world import World
from drayman.quota.fitting.admitted_room import ReservedPlaces
from drayman.quota.fitting.rooms import ROOM
from drayman.reasons.reason import Headline, Outlook
from drayman.reasons.wording import and_list, counted, named

_NO_HOLDERS: Final[Mapping[str, str]] = {}


class Reserved:
    """What is reserved for admitted workloads, while it counts in the state of a world (`reserved_in`)."""

    def __init__(self, world: World, places: ReservedPlaces | None) -> None:
        self._world = world
        self._places = places
        self._sentences: dict[Hashable, str] = {}

    @property
    def nominations(self) -> Nominations | None:
        """The places of pods that wait; None where nothing is reserved."""
        return None if self._places is None else self._places.nominations

    @property
    def by_holder(self) -> Mapping[str, str]:
        """The workloads, by namespace and name, by the names under which the ledger has their devices."""
        return _NO_HOLDERS if self._places is None else self._places.by_holder

    def as_seen_by(self, pod: Pod) -> AbstractContextManager[None]:
        """Within it, the place of a pod, and those that it may take, are free."""
        nominations = self.nominations
        return nullcontext() if nominations is None else nominations.as_seen_by(pod)

    def view_of(self, pod: Pod) -> Hashable:
        """Equal for pods that may take the same places."""
        nominations, gangs = self.nominations, self._world.state.gangs
        if nominations is None:
            return None
        own = pod.metadata.uid if pod.metadata.uid in nominations else ""
        return own, gangs.priority_of(pod), gangs.key_of(pod)

    def with_workloads(self, first: Headline, pod: Pod, alike: Hashable = None) -> Headline:
        """What there is to say about a pod that has no room, or whose gang has none, with the workloads for which room is reserved that it
        could have. `alike` is equal for pods that ask for the same."""
        if self._places is None or first.reason.kind not in (Outlook.NOT_NOW, Outlook.NOT_HERE):
            return first
        own = pod.metadata.uid if alike is None else alike
        key = (self._world.state.gangs.key_of(pod) or own, self.view_of(pod))
        if key not in self._sentences:
            self._sentences[key] = self._sentence(pod, self._places)
        more = self._sentences[key]
        return Headline.of(first.reason, f"{first.sentence} {more}") if more else first

    def on_node(self, first: Headline, node: str, refusal: Callable[[], object]) -> Headline:
        """What keeps a pod from one node, with the workloads for which room is reserved there. `refusal` is None if it could go there."""
        if self._places is None:
            return first
        with self._places.disregarded():
            is_open = refusal() is None
        more = self._naming({node}, self._places) if is_open else ""
        return Headline.of(first.reason, f"{first.sentence} {more}") if more else first

    def _sentence(self, pod: Pod, places: ReservedPlaces) -> str:
        with places.disregarded():
            nodes = _nodes_for(self._world, pod)
        return self._naming(nodes, places)

    @staticmethod
    def _naming(nodes: set[str], places: ReservedPlaces) -> str:
        workloads = places.workloads_on(nodes)
        if not workloads:
            return ""
        where, whose = named("node", sorted(nodes)), named("Workload", workloads)
        verb = "is" if len(workloads) == 1 else "are"
        return f"There would be room on {where}, but it is reserved for {whose}, which {verb} admitted."


@contextmanager
def reserved_in(world: World) -> Iterator[Reserved]:
    """Within it, the places of admitted workloads are taken in the state of the world, each for its own pod, as in the scheduler."""
    workloads = world.objects.queued_workloads
    if not any(ROOM in each.metadata.annotations for each in workloads):
        yield Reserved(world, None)
        return
    with world.state.trial():
        yield Reserved(world, ReservedPlaces(world.state, workloads, world.objects.pods))


def _nodes_for(world: World, pod: Pod) -> set[str]:
    """Where a pod, or its gang, would go; none if it has no room."""
    gang = Gangs(world).of(pod)
    if gang is not None:
        return {seat.found.node.facts.name for seat in gang.seats.values()}
    outcome = Decider(world.state).round(world.now).consider(pod)
    return {outcome.found.node.facts.name} if isinstance(outcome, Fitting) else set()


def with_room_kept(world: World, first: Headline, waiting: Iterable[Pod]) -> Headline:
    """What there is to say about pods without a node, with where room is kept for them and how many pods have yet to go there."""
    nodes = {pod.status.nominated_node_name for pod in waiting if not pod.spec.node_name} - {""}
    if not nodes:
        return first
    leaving = sum(pod.spec.node_name in nodes and is_terminating(pod) for pod in world.objects.pods)
    named = f"node {min(nodes)}" if len(nodes) == 1 else f"nodes {and_list(sorted(nodes))}"
    going = f": {counted(leaving, 'pod')} there {_have(leaving)} yet to go" if leaving else ""
    return Headline.of(first.reason, f"{first.sentence} Room is kept for it on {named}{going}.")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
