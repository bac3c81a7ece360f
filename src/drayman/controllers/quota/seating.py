"""Pods of workloads that were given places in a topology: each is told its domain, and then its gate is removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.integers import parse_integer
from drayman.api.kueue_workload import PodSet
from drayman.api.pods import is_active
from drayman.cluster.informer import Notice
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import PODS, JsonObject
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.standing import may_run
from drayman.quota.fitting.belonging import pod_set_of
from drayman.quota.topology.assignments import placement_of
from drayman.workloads.queued.names import TOPOLOGY_GATE, WORKLOAD
from drayman.workloads.queued.seating import Sitter, seats

BY_WORKLOAD: Final = "quota:pods-by-workload"
"""The index of pods that have places in a topology by the key of their Workload."""


def workload_keys(pod: Pod) -> Iterable[str]:
    name = pod.metadata.annotations.get(WORKLOAD)
    return [f"{pod.metadata.namespace}/{name}"] if name else []


def _is_held(pod: Pod) -> bool:
    return any(gate.name == TOPOLOGY_GATE for gate in pod.spec.scheduling_gates)


class Seating:
    """Tells pods where to go."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.loop = Loop("places in topologies", self.attend, workers=1)
        informer = shared.informers.informer(PODS, indexers={BY_WORKLOAD: workload_keys})
        informer.add_handler(self._changed)
        self._cache = informer.cache

    def _changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        name = pod.metadata.annotations.get(WORKLOAD)
        if name and (_is_held(pod) or notice.type == "DELETED"):
            self.loop.queue.add((pod.metadata.namespace, name))

    async def attend(self, key: Key) -> None:
        known = self._shared.book.find(key)
        if known is None or not may_run(known) or known.status.admission is None:
            return
        if known.status.unhealthy_nodes:
            return  # Some of its places are about to be replaced.
        pods = [
            each for each in self._cache.by_index(BY_WORKLOAD, "/".join(key)) if is_active(each)
        ]
        sets = {each.name: each for each in known.spec.pod_sets}
        for assigned in known.status.admission.pod_set_assignments:
            if assigned.topology_assignment is None or assigned.name not in sets:
                continue
            own = [each for each in pods if pod_set_of(each, list(sets)) == assigned.name]
            try:
                placement = placement_of(assigned.topology_assignment)
            except DecodeError as error:
                self._shared.book.record(known, "Warning", "TopologyAssignmentInvalid", str(error))
                continue
            label = _index_label(sets[assigned.name])
            sitters = [_sitter(each, label) for each in own]
            found = seats(placement.levels, placement.domains, sitters)
            for pod in own:
                if pod.metadata.name in found and _is_held(pod):
                    await self._tell(pod, found[pod.metadata.name])

    async def _tell(self, pod: Pod, selector: dict[str, str]) -> None:
        metadata = pod.metadata
        gates = [
            {"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != TOPOLOGY_GATE
        ]
        operations: list[JsonObject] = [
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": metadata.resource_version,
            },
            {
                "op": "add",
                "path": "/spec/nodeSelector",
                "value": {**pod.spec.node_selector, **selector},
            },
            {"op": "add", "path": "/spec/schedulingGates", "value": gates},
        ]
        await self._shared.client.patch(
            PODS, metadata.name, json_patch(operations), metadata.namespace
        )


def _index_label(pod_set: PodSet) -> str:
    request = pod_set.topology_request
    return (request.pod_index_label or "") if request is not None else ""


def _sitter(pod: Pod, label: str) -> Sitter:
    index = parse_integer(pod.metadata.labels.get(label, "")) if label else None
    return Sitter(pod.metadata.name, index, pod.spec.node_selector, _is_held(pod))
