"""Carries out preemption: asks the victims to go, and says for whom.

A pod that has asked others to go waits for them. Until they are gone it asks nobody else, whatever wakes it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import merge_patch, strategic_merge_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import DISRUPTION_BUDGETS, PODS
from drayman.placement.claims import ClaimsNotReadyError, claims_of
from drayman.placement.demand import Demand
from drayman.placement.placing import NotFound, Placer
from drayman.placement.preemption import Occupant, Preemption, Victims
from drayman.placement.state import FINISHED, ClusterState, NodeState
from drayman.placement.times import timestamp_of
from drayman.scheduler.decisions import MANAGER
from drayman.scheduler.protection import Budgets

_log: Final = logging.getLogger(__name__)

BY_NODE: Final = "node"
_MOST_NODES: Final = 100
"""Nodes on which victims are looked for, as in Kubernetes."""


class Evictor:
    """Makes room for pods that are more important than others."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        state: ClusterState,
        recorder: EventRecorder,
        placer: Placer,
    ) -> None:
        self._client = client
        self._state = state
        self._recorder = recorder
        self._placer = placer
        pods = informers.informer(PODS, indexers={BY_NODE: _node_of})
        self._pods = pods.cache
        pods.add_handler(self._pod_changed)
        self._priorities: Counter[int] = Counter()
        """How many pods on nodes have which priority."""
        self._priority_of: dict[str, int] = {}  # by uid
        self._budgets = Budgets(informers.informer(DISRUPTION_BUDGETS).cache)
        self._preemption = Preemption(state, self._occupants, self._budgets.protects)
        self._asked: dict[
            str, tuple[Pod, ...]
        ] = {}  # victims, by uid of the pod they make room for

    def plan(
        self, demand: Demand, not_found: NotFound, now: float
    ) -> Coroutine[None, None, None] | None:
        """What to do so that a refused pod finds room; None where nobody may be asked to go."""
        pod = demand.pod
        if (pod.spec.preemption_policy or "PreemptLowerPriority") == "Never":
            return None
        if self._still_leaving(pod.metadata.uid):
            return None
        priority = pod.spec.priority or 0
        if all(each >= priority for each in self._priorities):
            return None  # nearly always, so nobody is looked at
        candidates = self._candidates(demand, not_found, priority)
        if not candidates:
            return None
        victims = self._preemption.victims(
            priority, candidates, lambda node: self._placer.fits_on(demand, node)
        )
        if victims is None:
            return None
        self._asked[pod.metadata.uid] = victims.pods
        return self._evict(pod, victims, now)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        before = self._priority_of.pop(pod.metadata.uid, None)
        if before is not None:
            self._priorities[before] -= 1
            if not self._priorities[before]:
                del self._priorities[before]
        if notice.type != "DELETED" and pod.spec.node_name:
            now = self._priority_of[pod.metadata.uid] = pod.spec.priority or 0
            self._priorities[now] += 1

    def forget(self, uid: str) -> None:
        """The pod needs no room any more."""
        self._asked.pop(uid, None)

    def _still_leaving(self, uid: str) -> bool:
        victims = self._asked.pop(uid, ())
        here = tuple(victim for victim in victims if self._is_here(victim))
        if here:
            self._asked[uid] = here
        return bool(here)

    def _is_here(self, victim: Pod) -> bool:
        found = self._pods.get(victim.metadata.name, victim.metadata.namespace)
        return found is not None and found.metadata.uid == victim.metadata.uid

    def _candidates(self, demand: Demand, not_found: NotFound, priority: int) -> list[NodeState]:
        """Nodes whose refusal could go with pods that are less important."""
        found = []
        for name, verdict in not_found.verdicts.items():
            if not verdict.resolvable:
                continue
            node = self._state.nodes.get(name)
            if node is not None and any(o.priority < priority for o in self._occupants(name)):
                found.append(node)
                if len(found) == _MOST_NODES:
                    break
        return found

    def _occupants(self, node: str) -> Sequence[Occupant]:
        return [
            Occupant(pod, self._claims_only_of(pod))
            for pod in self._pods.by_index(BY_NODE, node)
            if self._state.node_of(pod.metadata.uid) == node
        ]

    def _claims_only_of(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        try:
            claims = claims_of(pod, self._state.find_claim)
        except ClaimsNotReadyError:
            return ()
        extended = self._state.extended_claim_of(pod.metadata.uid)
        if extended is not None:
            claims = (*claims, extended)
        uid = pod.metadata.uid
        return tuple(
            claim for claim in claims if all(e.uid == uid for e in claim.status.reserved_for)
        )

    async def _evict(self, pod: Pod, victims: Victims, now: float) -> None:
        for victim in victims.pods:
            await self._ask_to_go(victim, pod, victims.node, now)
        await self._nominate(pod, victims.node)

    async def _ask_to_go(self, victim: Pod, pod: Pod, node: str, now: float) -> None:
        metadata = victim.metadata
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"default-scheduler: preempting to accommodate a higher priority pod {pod.metadata.name}",
            "lastTransitionTime": timestamp_of(now),
        }
        patch = {"metadata": {"uid": metadata.uid}, "status": {"conditions": [condition]}}
        try:
            if metadata.deletion_timestamp is None:
                await self._client.patch(
                    PODS,
                    metadata.name,
                    strategic_merge_patch(patch),
                    metadata.namespace,
                    subresource="status",
                    options=WriteOptions(field_manager=MANAGER),
                )
                await self._client.delete(
                    PODS,
                    metadata.name,
                    metadata.namespace,
                    options=DeleteOptions(uid=metadata.uid),
                )
        except (NotFoundError, ConflictError) as error:
            _log.info("pod %s has gone by itself: %s", metadata.name, error)
            return
        except ClusterError as error:
            _log.warning("pod %s cannot be preempted: %s", metadata.name, error)
            return
        note = f"Preempted by pod {pod.metadata.uid} on node {node}"
        self._recorder.record(
            Reference.to(PODS, victim),
            "Normal",
            "Preempted",
            note,
            "Preempting",
            Reference.to(PODS, pod),
        )

    async def _nominate(self, pod: Pod, node: str) -> None:
        """Tell for which node the pod waits."""
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": node}}
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name,
                merge_patch(patch),
                pod.metadata.namespace,
                subresource="status",
                options=WriteOptions(field_manager=MANAGER),
            )
        except ClusterError as error:
            _log.info("pod %s cannot be nominated: %s", pod.metadata.name, error)


def _node_of(pod: Pod) -> tuple[str, ...]:
    if not pod.spec.node_name or pod.status.phase in FINISHED:
        return ()
    return (pod.spec.node_name,)
