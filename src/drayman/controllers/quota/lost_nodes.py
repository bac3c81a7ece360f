"""Nodes that pods of a workload were assigned to in a topology, and that are lost: other nodes instead of them, or eviction.

The loss is written down first (`status.unhealthyNodes`). Then other places are looked for, beside the pods that stay
(`quota/topology/replacing.py`), with room for the pods in them, and written in the place of the lost ones; pods that are made anew go
there. If there are none, or a second node is lost before the first was replaced, the workload is evicted (NodeFailures).

A workload of a single pod that nobody else made has nothing to be replaced: it is gone with its pod.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from drayman.api.core import Node, Pod, Toleration
from drayman.api.errors import DecodeError
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import Admission, UnhealthyNode
from drayman.api.pods import is_leaving
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import NODES, PODS
from drayman.cluster.together import write_together
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.pod_writes import PodWrites
from drayman.controllers.quota.rooms import RoomKeeping, no_room_for
from drayman.controllers.quota.seating import BY_WORKLOAD, workload_keys
from drayman.controllers.quota.shared import Shared
from drayman.placement.fit.readiness import is_ready
from drayman.quota.demands import NotPlaced
from drayman.quota.fitting.belonging import pod_set_of
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.rooms import ROOM
from drayman.quota.state import QuotaState
from drayman.quota.topology.assignments import placement_of
from drayman.quota.topology.health import HOST, lost_hosts
from drayman.workloads.queued import life
from drayman.workloads.queued.names import WORKLOAD

_log: Final = logging.getLogger(__name__)


class LostNodes:
    """Looks at the nodes of workloads that have places in a topology."""

    def __init__(self, shared: Shared, state: Callable[[], QuotaState], rooms: RoomKeeping) -> None:
        self._shared = shared
        self._state = state
        self._rooms = rooms
        rooms.look_first(self.attend)
        self._writes = PodWrites(shared)
        nodes = shared.informers.informer(NODES)
        nodes.add_handler(self._node)
        self._nodes = nodes.cache
        pods = shared.informers.informer(PODS, indexers={BY_WORKLOAD: workload_keys})
        pods.add_handler(self._pod)
        self._pods = pods.cache
        self._of_all = True
        """Whether all have to be looked at, as at first."""
        self._of: dict[Key, None] = {}
        self._untold: set[Key] = set()
        """Those with a lost node that the engine does not know to hold quota yet. They are looked at when it is told of them."""

    def told(self, key: Key) -> None:
        """The engine was told of a Workload."""
        if key in self._untold:
            self._untold.discard(key)
            self._of[key] = None
            self._rooms.look_again()

    def _node(self, notice: Notice[Node]) -> None:
        old, new = notice.old, notice.object
        if notice.type == "DELETED" or old is None or _health(old) != _health(new):
            self._of_all = True
            self._rooms.look_again()

    def _pod(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        name = pod.metadata.annotations.get(WORKLOAD)
        if (
            name
            and HOST in pod.spec.node_selector
            and (notice.type == "DELETED" or is_leaving(pod))
        ):
            self._of[pod.metadata.namespace, name] = None
            self._rooms.look_again()

    async def attend(self) -> None:
        """Look at all that a change may concern."""
        everybody, self._of_all = self._of_all, False
        keys, self._of = self._of, {}
        found = (
            self._shared.book.all()
            if everybody
            else [each for key in keys if (each := self._shared.book.find(key)) is not None]
        )
        hosts: dict[str, Node] = {}
        for known in found:
            if _is_placed(known):
                hosts = hosts or {node.metadata.labels.get(HOST, ""): node for node in self._nodes}
                try:
                    await self._look_at(known, hosts)
                except ClusterError as error:
                    _log.warning("Workload %s/%s: %s; looking again", *known.key, error)
                    self._of[known.key] = None
                    self._rooms.look_again()

    async def _look_at(self, known: Known, hosts: dict[str, Node]) -> None:
        try:
            lost = self._lost(known, hosts)
        except DecodeError as error:
            self._shared.book.record(known, "Warning", "TopologyAssignmentInvalid", str(error))
            return
        before = {each.name for each in known.status.unhealthy_nodes}
        if not lost:
            if before:
                # It is back before it was replaced.
                status = replace(known.status, unhealthy_nodes=())
                await self._shared.book.write_status(known, status)
            return
        every = sorted(before | lost)
        if len(every) > 1:
            await self._rooms.evict(
                known, f"More than one of its nodes is lost: {', '.join(every)}"
            )
            return
        if before != lost:
            unhealthy = tuple(UnhealthyNode(name=each) for each in every)
            status = replace(known.status, unhealthy_nodes=unhealthy)
            known = await self._shared.book.write_status(known, status)
        await self._replace(known, frozenset(lost))

    def _lost(self, known: Known, hosts: dict[str, Node]) -> set[str]:
        """Raises DecodeError."""
        assert known.status.admission is not None
        pods = list(self._pods.by_index(BY_WORKLOAD, "/".join(known.key)))
        names = [each.name for each in known.spec.pod_sets]
        lost: set[str] = set()
        for assigned in known.status.admission.pod_set_assignments:
            if assigned.topology_assignment is not None:
                placement = placement_of(assigned.topology_assignment)
                own = [pod for pod in pods if pod_set_of(pod, names) == assigned.name]
                tolerations = self._tolerations(known, assigned.name, assigned.flavors.values())
                lost.update(lost_hosts(placement, hosts, tolerations, own))
        return lost

    def _tolerations(
        self, known: Known, pod_set: str, names: Iterable[str]
    ) -> tuple[Toleration, ...]:
        flavors = self._shared.flavors()
        added = [each for name in names if name in flavors for each in flavors[name].tolerations]
        for each in known.spec.pod_sets:
            if each.name == pod_set:
                added += pod_template_of(each.template).spec.tolerations
        return tuple(added)

    async def _replace(self, known: Known, lost: frozenset[str]) -> None:
        found = self._state().replaced("/".join(known.key), lost)
        if found is None:
            self._untold.add(known.key)
            return
        if isinstance(found, NotPlaced):
            await self._rooms.evict(known, no_room_for(found.message))
            return
        room = self._rooms.rearrange(known, found)
        if isinstance(room, Unfit):
            await self._rooms.evict(known, no_room_for(room.message))
            return
        failed: list[ClusterError] = []
        bundle = self._shared.book.bundle(
            known,
            replace(known.status, admission=found, unhealthy_nodes=()),
            failed.append,
            partial(self._report, lost, found),
            annotations={ROOM: room or ""},
        )
        await write_together(self._shared.client, [bundle])
        if failed:
            # What is written down counts.
            self._rooms.forget(known.key)
            self._rooms.follow(known)
            raise failed[0]
        await self._delete_misled(known, lost)

    def _report(self, lost: frozenset[str], admission: Admission, written: Known) -> None:
        hosts = sorted(
            {
                domain[-1]
                for each in admission.pod_set_assignments
                if each.topology_assignment is not None
                for domain, _ in placement_of(each.topology_assignment).domains
            }
        )
        note = (
            f"Lost node {', '.join(sorted(lost))} was replaced; its pods are on {', '.join(hosts)}"
        )
        self._shared.book.record(written, "Normal", "NodeReplaced", note[:1000])

    async def _delete_misled(self, known: Known, lost: frozenset[str]) -> None:
        """Pods that were told to go to a lost node and are on none would wait for ever. Whoever made them makes others."""
        for pod in self._pods.by_index(BY_WORKLOAD, "/".join(known.key)):
            told = pod.spec.node_selector.get(HOST)
            if told in lost and not pod.spec.node_name and not is_leaving(pod):
                await self._writes.delete(pod, "NodeReplaced", f"node {told} was replaced")


def _health(node: Node) -> Any:
    """What decides whether a node is lost to pods."""
    labels = node.metadata.labels.get(HOST)
    return labels, is_ready(node.status.conditions), node.spec.taints


def _is_placed(known: Known) -> bool:
    """Whether a workload has nodes that can be replaced."""
    status = known.status
    if not life.holds_quota(status) or life.is_evicted(status) or life.is_finished(status):
        return False
    owners = known.workload.metadata.owner_references
    pods = sum(each.count for each in known.spec.pod_sets)
    if pods == 1 and any(owner.kind == "Pod" for owner in owners):
        return False
    assert status.admission is not None
    return any(
        each.topology_assignment is not None for each in status.admission.pod_set_assignments
    )
