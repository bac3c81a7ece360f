"""Admission of work that waits in Kueue's queues, as Kueue's webhooks have it.

New Jobs and their like are suspended, new pods are gated, Deployments and StatefulSets pass their queue on to their pods, and what names no
queue gets the default one of its namespace. It holds only while the loop runs that starts them again (`controllers/quota`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.apiserver.kinds.reading import at, each_at, map_at, text_at
from drayman.apiserver.protocol.errors import forbidden, invalid
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.workloads.dispatching.names import CONTROLLER, leave_to_dispatcher
from drayman.workloads.queued.entering import (
    EntrySurroundings,
    Intake,
    choose_queue,
    framework_of,
    hold_job,
    hold_pod,
    pass_on,
    pass_on_as_group,
    queue_change_problem,
    waits,
)
from drayman.workloads.queued.kinds import BY_KIND, DEPLOYMENTS, PODS, STATEFUL_SETS, QueuedKind
from drayman.workloads.queued.names import DEFAULT_QUEUE, queue_of
from drayman.workloads.queued.stating import misstated

_LOCAL_QUEUES: Final = f"localqueues.{KUEUE}"
_CLUSTER_QUEUES: Final = f"clusterqueues.{KUEUE}"
_CHECKS: Final = f"admissionchecks.{KUEUE}"


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
            errors = list(misstated(write.new, write.old))
            if errors:
                raise invalid(write.resource.kind_subject(write.name), errors)
            self._hold(write, framework, write.new)

    def _surroundings(self, write: Admitted) -> EntrySurroundings:
        objects = write.context.objects
        namespace = objects.get("namespaces", "", write.namespace)
        default = objects.get(_LOCAL_QUEUES, write.namespace, DEFAULT_QUEUE)

        def find(kind: QueuedKind, name: str) -> Object | None:
            return objects.get(f"{kind.plural}.{kind.group}", write.namespace, name)

        return EntrySurroundings(map_at(namespace, "metadata", "labels"), default is not None, find)

    def _hold(self, write: Admitted, framework: str, new: Object) -> None:
        if framework == DEPLOYMENTS:
            pass_on(new)
        elif framework == STATEFUL_SETS:
            self._hold_stateful_set(write, new)
        elif write.operation == "CREATE" and framework == PODS:
            hold_pod(new)
        elif write.operation == "CREATE":
            kind = BY_KIND[write.resource.group, write.resource.kind]
            hold_job(kind, new)
            if self._is_dispatched(write, new):
                leave_to_dispatcher(kind, new)
        elif framework != PODS and write.old is not None:
            kind = BY_KIND[write.resource.group, write.resource.kind]
            problem = queue_change_problem(new, write.old, held=kind.is_suspended(write.old))
            if problem is not None:
                raise forbidden(write.resource.subject(write.name), problem)

    def _is_dispatched(self, write: Admitted, new: Object) -> bool:
        """Whether the queue of an object hands its work to other clusters."""
        objects = write.context.objects
        local = objects.get(_LOCAL_QUEUES, write.namespace, queue_of(new))
        queue = objects.get(_CLUSTER_QUEUES, "", text_at(local, "spec", "clusterQueue"))
        return any(
            text_at(objects.get(_CHECKS, "", name), "spec", "controllerName") == CONTROLLER
            for name in _checks_of(queue)
        )

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


def _checks_of(queue: Object | None) -> Iterator[str]:
    """The checks that workloads of a cluster queue need, with whatever flavor."""
    for _, rule in each_at(queue or {}, "", "spec", "admissionChecksStrategy", "admissionChecks"):
        yield text_at(rule, "name")
