"""From what was named to what there is to say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from drayman.cli.errors import UserError
from drayman.cli.explain.naming import CLUSTER, NODE, Subject

if TYPE_CHECKING:
    from drayman.api.meta import ObjectMeta
    from drayman.cluster.resources import Resource
    from drayman.explain.answer import Explanation
    from drayman.simulate.world import World

T = TypeVar("T")


def explanation_of(world: World, subject: Subject, namespace: str) -> Explanation:
    """What there is to say. Raises UserError where there is no such object."""
    found = _explained(world, subject, namespace)
    if found is not None:
        return found
    _refuse_unseen(world, subject, namespace)
    if not subject.is_namespaced:
        raise UserError(f"there is no {subject}")
    raise UserError(
        f"there is no {subject} in namespace {namespace}; name another with --namespace"
    )


def _explained(world: World, subject: Subject, namespace: str) -> Explanation | None:
    from drayman.explain.claim import explain_claim
    from drayman.explain.node import explain_node
    from drayman.explain.overview import explain_all, explain_namespace
    from drayman.explain.pod import explain_pod
    from drayman.explain.workload import explain_job, explain_workload

    objects = world.objects

    def told(those: Iterable[T], explain: Callable[[World, T], Explanation]) -> Explanation | None:
        key = (namespace if subject.is_namespaced else "", subject.name)
        for each in those:
            if _key(each) == key:
                return explain(world, each)
        return None

    match subject.kind:
        case "pod":
            return told(objects.pods, explain_pod)
        case "resourceclaim":
            return told(objects.claims, explain_claim)
        case "job":
            return told(objects.jobs, explain_job)
        case "deployment":
            return told(objects.deployments, explain_workload)
        case "replicaset":
            return told(objects.replica_sets, explain_workload)
        case "statefulset":
            return told(objects.stateful_sets, explain_workload)
        case "daemonset":
            return told(objects.daemon_sets, explain_workload)
        case kind if kind == NODE:
            return told(objects.nodes, explain_node)
        case kind if kind == CLUSTER:
            return explain_all(world)
    return explain_namespace(world, subject.name) if _is_known(world, subject.name) else None


def _is_known(world: World, namespace: str) -> bool:
    """Whether there is such a namespace, as far as can be seen: who may not list them may ask about any."""
    names = {each.metadata.name for each in world.objects.namespaces}
    return not names or namespace in names


def _key(value: object) -> tuple[str, str]:
    metadata: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def _refuse_unseen(world: World, subject: Subject, namespace: str) -> None:
    """Raises UserError where the object may be there, but is not for the asker to see."""
    from drayman.cluster.resources import (
        DAEMON_SETS,
        DEPLOYMENTS,
        JOBS,
        REPLICA_SETS,
        STATEFUL_SETS,
    )

    listed: tuple[Resource[Any], ...] = (
        JOBS,
        DEPLOYMENTS,
        REPLICA_SETS,
        STATEFUL_SETS,
        DAEMON_SETS,
    )
    for resource in listed:
        if resource.kind.lower() == subject.kind and resource.qualified in world.unseen:
            raise UserError(
                f"this needs the permission to list {resource.qualified} in {namespace}"
            )
