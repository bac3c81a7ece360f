"""What would make a gang start: another member where one fits nowhere, fewer pods at once, a wider level, or the end of others.

As with single pods, each change is made on the state of the world, the whole gang is decided about with it, and it is undone. It counts as
help if the pod that is asked about is among those that start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
from drayman.api.pod_groups import PodGroup
from drayman.explain.answer import Operation, Remedy
from drayman.explain.gang import GangFinding, Gangs
from drayman.explain.remedies.case import remedy
from drayman.explain.remedies.choosing import RemedyReport
from drayman.explain.remedies.freeing import deleting
from drayman.explain.remedies.linked_pods import LinkedPods, PodIndex
from drayman.explain.remedies.members import carry_out, remedies_of, stuck_members
from drayman.explain.remedies.patching import Patch, cut, patch_of, patched, put
from drayman.explain.remedies.trying import Fit
from drayman.inventory.identity import DeviceId
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.book import GroupObject, key_of_group, ranked
from drayman.placement.gangs.gang import Gang
from drayman.placement.nodes import NodeState
from drayman.placement.world import World
from drayman.reasons.gangs import GangRefusal
from drayman.reasons.wording import counted

_MOST_NODES: Final = 64
"""Nodes whose pods are considered."""
_MOST_HOMES: Final = 8
"""Places in which it is tried what happens without pods."""
_MOST_PRESENT: Final = 40
"""With more pods in the way than these, the choice is left to people."""


def remedies_for_gang(world: World, pod: Pod, gangs: Gangs, found: GangFinding) -> RemedyReport:
    """What would let a pod start that is in a gang without room."""
    gang, refusal = found.gang, found.refusal
    if gang is None or refusal is None or refusal.nearest is None:
        return RemedyReport()
    search = _Search(world, pod, gangs, gang, refusal)
    remedies = (*search.otherwise(), *search.fewer(), *search.wider(), *search.ended())
    return RemedyReport(remedies, search.untried)


class _Search:
    def __init__(
        self, world: World, pod: Pod, gangs: Gangs, gang: Gang, refusal: GangRefusal
    ) -> None:
        self._world = world
        self._state = world.state
        self._pod = pod
        self._gangs = gangs
        self._gang = gang
        self._nearest = refusal.nearest
        self._homes = refusal.homes
        self._index = PodIndex(world, pod)
        self._group = _object_of(world, gang)
        self.untried = ""

    def otherwise(self) -> Iterator[Remedy]:
        """What would help a member that fits nowhere, if the gang starts with it."""
        members = [m.pod for m in ranked(self._state.gangs.waiting(self._gang.key))]
        named = {pod.metadata.name: pod for pod in members}
        for stuck in stuck_members(self._world, members):
            report = remedies_of(self._world, stuck)
            self.untried = self.untried or report.untried
            for each in report.remedies:
                with self._state.trial():
                    carry_out(self._world, named, each)
                    fit = self._fit()
                if fit is not None:
                    yield replace(each, node=fit.node, devices=fit.devices)

    def fewer(self) -> Iterator[Remedy]:
        """As many as fit now."""
        gang, group = self._gang, self._group
        placed = len(self._state.gangs.placed(gang.key))
        number = placed + (len(self._nearest.seats) if self._nearest is not None else 0)
        if group is None or gang.subgroups or not placed < number < gang.least:
            return
        patch = (put(number, *_least_of(group)),)
        fit = self._with(group, patch)
        if fit is not None:
            words = f"let {counted(number, 'pod')} of {gang.key} start together instead of {gang.least:,}"
            yield remedy(words, (_operation(group, patch),), fit)

    def wider(self) -> Iterator[Remedy]:
        """The next wider level with a domain that has room, or none at all."""
        gang, group = self._gang, self._group
        if not isinstance(group, PodGroup) or group.spec.scheduling_constraints is None:
            return
        required = gang.wish.required
        if required is None or not group.spec.scheduling_constraints.topology:
            return
        hierarchy = Domains(self._state).hierarchy((), required=required)
        named = hierarchy.levels[0].title
        for level in reversed(hierarchy.above):
            path = ("spec", "schedulingConstraints", "topology", 0, "key")
            patch: Patch = (put(level.key, *path),)
            fit = self._with(group, patch)
            if fit is not None:
                words = (
                    f"require one {level.title} ({level.key}) instead of one {named} for {gang.key}"
                )
                yield remedy(words, (_operation(group, patch),), fit)
                return
        patch = (cut("spec", "schedulingConstraints"),)
        fit = self._with(group, patch)
        if fit is not None:
            words = f"do not require one {named} for {gang.key}"
            yield remedy(words, (_operation(group, patch),), fit)

    def ended(self) -> Iterator[Remedy]:
        """Pods of one place, as few and as unimportant as possible, without which the gang starts there."""
        for nodes in self._homes[:_MOST_HOMES]:
            present = self._present(nodes)
            if len(present) > _MOST_PRESENT:
                self.untried = "Where very many pods are in the way, nothing was tried."
                continue
            victims, fit = self._victims(present)
            if fit is not None and victims:
                yield deleting(victims, fit, "")
                return

    def _victims(self, present: Sequence[LinkedPods]) -> tuple[list[LinkedPods], Fit | None]:
        victims: list[LinkedPods] = []
        with self._state.trial() as trial:
            for each in present:
                each.leave(trial)
            if self._fit() is None:
                return [], None
            # The most important come back first.
            for each in sorted(present, key=_importance):
                each.come_back(trial)
                if self._fit() is None:
                    each.leave(trial)
                    victims.append(each)
            return victims, self._fit()

    def _present(self, nodes: Sequence[NodeState]) -> list[LinkedPods]:
        """What is in use on the nodes, without the gang itself."""
        own = self._state.gangs.placed(self._gang.key)
        found: dict[int, LinkedPods] = {}
        used = 0
        for node in nodes:
            here = self._index.linked_on(node)
            used += bool(here)
            if used > _MOST_NODES:
                self.untried = f"Only what is in use on {_MOST_NODES} nodes was considered."
                break
            for linked in here:
                if not any(pod.metadata.uid in own for pod in linked.pods):
                    found[id(linked)] = linked
        return list(found.values())

    def _with(self, group: GroupObject, patch: Patch) -> Fit | None:
        with self._state.trial():
            self._state.gangs.set_group(patched(group, patch))
            return self._fit()

    def _fit(self) -> Fit | None:
        seat = self._gangs.seat_of(self._pod)
        if seat is None:
            return None
        given = () if seat.found.plan is None else seat.found.plan.claims
        results = (r for item in given for r in item.allocation.devices.results)
        return Fit(seat.found.node.facts.name, tuple(str(DeviceId.of(r)) for r in results))


def _importance(linked: LinkedPods) -> tuple[bool, int, int, str]:
    return linked.is_leaving, -linked.priority, linked.devices, linked.age


def _object_of(world: World, gang: Gang) -> GroupObject | None:
    objects = world.objects
    groups: tuple[GroupObject, ...] = (
        *objects.pod_groups,
        *objects.plugin_pod_groups,
        *objects.kai_pod_groups,
    )
    return next((group for group in groups if key_of_group(group) == gang.key), None)


def _least_of(group: GroupObject) -> tuple[str, ...]:
    """Where it says how many pods start together."""
    match group:
        case PodGroup():
            return ("spec", "schedulingPolicy", "gang", "minCount")
        case PluginPodGroup() | KaiPodGroup():
            return ("spec", "minMember")


def _operation(group: GroupObject, patch: Patch) -> Operation:
    return patch_of(group.kind, group.metadata.name, patch, group.metadata.namespace)
