"""Admission of work that waits in Kueue's queues, as Kueue's webhooks have it.

New Jobs and their like are suspended, new pods are gated, Deployments and StatefulSets pass their queue on to their pods, and what names no
queue gets the default one of its namespace. It holds only while the loop runs that starts them again (`controllers/quota`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.apiserver.kinds.reading import at, map_at
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.workloads.queued.entering import (
    Intake,
    Surroundings,
    choose_queue,
    framework_of,
    hold_job,
    hold_pod,
    pass_on,
    pass_on_as_group,
    queue_change_problem,
    waits,
)
from drayman.workloads.queued.kinds import BY_KIND, DEPLOYMENTS, PODS, STATEFUL_SETS
from drayman.workloads.queued.names import DEFAULT_QUEUE

_LOCAL_QUEUES: Final = f"localqueues.{KUEUE}"


class QueuedWork(AdmissionPlugin):
    """Has work wait that has to."""

    def __init__(self, intake: Callable[[], Intake]) -> None:
        """`intake` says which work that is, as it is configured now."""
        self._intake = intake

    def admit(self, write: Admitted) -> None:
        if write.subresource or write.operation not in ("CREATE", "UPDATE") or write.new is None:
            return
        framework = framework_of(write.resource.group, write.resource.kind)
        if framework is None:
            return
        intake, around = self._intake(), self._surroundings(write)
        if write.operation == "CREATE":
            choose_queue(write.new, framework, intake, around)
        if waits(write.new, framework, intake, around):
            self._hold(write, framework, write.new)

    def _surroundings(self, write: Admitted) -> Surroundings:
        objects = write.context.objects
        namespace = objects.get("namespaces", "", write.namespace)
        default = objects.get(_LOCAL_QUEUES, write.namespace, DEFAULT_QUEUE)
        return Surroundings(map_at(namespace, "metadata", "labels"), default is not None)

    def _hold(self, write: Admitted, framework: str, new: Object) -> None:
        if framework == DEPLOYMENTS:
            pass_on(new)
        elif framework == STATEFUL_SETS:
            self._hold_stateful_set(write, new)
        elif write.operation == "CREATE" and framework == PODS:
            hold_pod(new)
        elif write.operation == "CREATE":
            hold_job(BY_KIND[write.resource.group, write.resource.kind], new)
        elif framework != PODS and write.old is not None:
            kind = BY_KIND[write.resource.group, write.resource.kind]
            problem = queue_change_problem(new, write.old, held=kind.is_suspended(write.old))
            if problem is not None:
                raise forbidden(write.resource.subject(write.name), problem)

    def _hold_stateful_set(self, write: Admitted, new: Object) -> None:
        """Its pods are admitted together, so their number can only change from or to none."""
        if write.old is not None:
            before, after = at(write.old, "spec", "replicas"), at(new, "spec", "replicas")
            if before != after and before and after:
                problem = f"spec.replicas: {before} pods wait for quota together; scale it to 0 before it gets {after}"
                raise forbidden(write.resource.subject(write.name), problem)
            if not after:
                return
        pass_on_as_group(new)
