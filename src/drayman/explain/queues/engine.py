"""The engine of quota on a cluster that was read: told of all its queues and workloads, it decides as the control loop would.

Nothing that it decides is written anywhere. What it gives away in a trial is taken back (`settling.py`), so that one engine answers
any number of questions about the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from drayman.api import codec
from drayman.api.errors import ApiError
from drayman.api.kueue import ClusterQueue
from drayman.api.kueue_workload import Workload
from drayman.api.limit_ranges import LimitRange
from drayman.explain.queues.room import WorldRoom
from drayman.explain.queues.told_prices import ToldPrices
from drayman.placement.world import World
from drayman.quota.charging.mapping_rules import MappingsError, read_mappings
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates
from drayman.quota.checks import Checks
from drayman.quota.demands import Pricing
from drayman.quota.past_use import Remembered
from drayman.quota.reading import key_of
from drayman.quota.settings import QuotaSettings, settings_of
from drayman.quota.state import QuotaState

_CHECKS: Final = "admissionchecks.kueue.x-k8s.io"
"""As they are named where they may not be read."""


class Problem(Struct, frozen=True):
    """An object that could not be understood, and is therefore left out."""

    kind: str
    name: str
    """With its namespace, if it has one."""
    message: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name}: {self.message}"
            if self.name
            else f"{self.kind}: {self.message}"
        )


class Queues(Struct, frozen=True, eq=False):
    """The queues of a cluster at one moment."""

    world: World
    state: QuotaState
    workloads: dict[str, Workload]
    """By key, those that the engine knows."""
    room: WorldRoom
    problems: tuple[Problem, ...] = ()
    cluster_queues: dict[str, ClusterQueue] = {}
    """Their objects, by name."""
    past: Remembered = {}
    """What local queues have used, as it was read."""

    @property
    def now(self) -> float:
        return self.world.now

    def forget_use(self) -> None:
        """Have local queues have used as much as when they were read, whatever was played since."""
        if self.state.past_use is not None:
            self.state.past_use.restore(self.past)

    def add(self, workload: Workload) -> str:
        """Tell the engine of one more workload, or of another version of one. Its key. Raises ApiError."""
        key = key_of(workload.metadata.namespace, workload.metadata.name)
        self.state.set_workload(workload, self.now)
        self.workloads[key] = workload
        return key


def queues_of(world: World) -> Queues:
    """An engine that knows the queues and workloads of a world. What makes no sense is left out, and listed."""
    problems: list[Problem] = []
    settings, mappings = _settings(world, problems)
    gates = Gates.of_configuration(world.queue_configuration)
    pricing: Pricing = DevicePricing(world.state, mappings, gates=gates)
    if world.queue_configuration is None:
        pricing = ToldPrices(pricing, world.objects.queued_workloads)
    state = QuotaState(settings, pricing)
    if _CHECKS not in world.unseen:
        checks = {each.metadata.name: each for each in world.objects.admission_checks}
        state.books.checks = Checks(checks.get)
    room = WorldRoom(world, state)
    if world.objects.kueue_topologies:
        state.books.ledger.topologies.counter = room.counter()
    state.ask_for_room(room)
    found = Queues(world, state, {}, room)
    for tell, value in _objects(world, state):
        _told(problems, tell, value)
    for limit_range in _limit_ranges(world, problems):
        state.set_limit_range(limit_range)
    for workload in world.objects.queued_workloads:
        _told(problems, found.add, workload)
    objects = {each.metadata.name: each for each in world.objects.cluster_queues}
    past = {} if state.past_use is None else state.past_use.remembered()
    return Queues(world, state, found.workloads, room, tuple(problems), objects, past)


def _objects(world: World, state: QuotaState) -> Iterator[tuple[Callable[[Any], object], Any]]:
    """Everything that queues depend on, in the order in which an engine is told of it."""
    objects, now = world.objects, world.now
    topologies: tuple[tuple[Callable[[Any], object], Iterable[Any]], ...] = ()
    if objects.kueue_topologies:  # otherwise nodes do not matter
        topologies = (
            (state.set_topology, objects.kueue_topologies),
            (state.set_node, objects.nodes),
            (state.set_pod, objects.pods),
        )
    tellers: tuple[tuple[Callable[[Any], object], Iterable[Any]], ...] = (
        (state.set_namespace, objects.namespaces),
        *topologies,
        (state.set_flavor, objects.flavors),
        (state.set_cohort, objects.cohorts),
        (lambda value: state.set_cluster_queue(value, now), objects.cluster_queues),
        (lambda value: state.set_local_queue(value, now), objects.local_queues),
    )
    for tell, values in tellers:
        for value in values:
            yield tell, value


def _told(problems: list[Problem], tell: Callable[[Any], object], value: Any) -> None:
    try:
        tell(value)
    except ApiError as error:
        metadata = value.metadata
        name = "/".join(filter(None, (metadata.namespace, metadata.name)))
        problems.append(Problem(value.kind, name, str(error)))


def _limit_ranges(world: World, problems: list[Problem]) -> Iterator[LimitRange]:
    for rule in world.objects.rules:
        if rule.get("kind") == "LimitRange":
            try:
                yield codec.convert(LimitRange, rule)
            except ApiError as error:
                name = (rule.get("metadata") or {}).get("name", "")
                problems.append(Problem("LimitRange", name, str(error)))


def _settings(world: World, problems: list[Problem]) -> tuple[QuotaSettings, DeviceClassMappings]:
    """What the Configuration of the cluster says. One that makes no sense counts as none."""
    if world.queue_configuration is None:
        return QuotaSettings(), DeviceClassMappings()
    try:
        gates = Gates.of_configuration(world.queue_configuration)
        return settings_of(world.queue_configuration), read_mappings(
            world.queue_configuration, gates
        )
    except ApiError as error:
        problems.append(Problem("Configuration", "", str(error)))
    except MappingsError as error:
        problems.extend(Problem("Configuration", "", str(each)) for each in error.errors)
    return QuotaSettings(), DeviceClassMappings()
