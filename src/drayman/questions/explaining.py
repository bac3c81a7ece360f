"""Explaining an object of a cluster: from what was named to what there is to say about it.

What is said comes from `drayman.explain`, which reads nothing. This module provides what it needs: as much of the cluster as the answer
requires, and the object that was named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from drayman.api.near_names import did_you_mean
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.questions.errors import NoSuchObjectError, QuestionError
from drayman.questions.subjects import CLUSTER, NAMESPACE, NODE, POD_GROUP, WORKLOAD, Target

if TYPE_CHECKING:
    from drayman.api.meta import ObjectMeta
    from drayman.cluster import Client
    from drayman.cluster.resources import Resource
    from drayman.explain.answer import Explanation
    from drayman.placement.world import Objects, World


async def read_for(
    client: Client, subject: Target, namespace: str, prices: PriceTable = NO_PRICES
) -> World:
    """As much of the cluster as an explanation needs. Raises MayNotListError and ClusterError."""
    from drayman.questions.reading import read_world

    world = await read_world(
        client,
        namespace=namespace,
        engine="drayman.explain.workload",
        workloads=subject.needs_workloads,
        queues=subject.kind == WORKLOAD,
    )
    return world.with_prices(prices)


def explanation_of(world: World, subject: Target, namespace: str) -> Explanation:
    """What there is to say. Raises QuestionError where there is no such object, or the user may not see it."""
    found = _explained(world, subject, namespace)
    if found is not None:
        return found
    raise missing(world, subject, namespace)


def missing(world: World, subject: Target, namespace: str) -> QuestionError:
    """Why there is nothing to say about a subject: there is no such object, or the user may not see it."""
    return _unseen(world, subject, namespace) or _no_such_object(world, subject, namespace)


def find_object(world: World, subject: Target, namespace: str) -> object | None:
    """The object that was named, if it was read."""
    key = (namespace if subject.is_namespaced else "", subject.name)
    for each in _those(world.objects, subject.kind):
        if _key(each) == key and _is_of(each, subject.group):
            return each
    return None


def _explained(world: World, subject: Target, namespace: str) -> Explanation | None:
    from drayman.explain.overview import explain_all, explain_namespace

    if subject.kind == CLUSTER:
        return explain_all(world)
    if subject.kind == NAMESPACE:
        return explain_namespace(world, subject.name) if _is_known(world, subject.name) else None
    found = find_object(world, subject, namespace)
    return None if found is None else _explainer(subject.kind)(world, found)


def _explainer(kind: str) -> Callable[[World, Any], Explanation]:
    from drayman.explain.admitted import explain_queued_workload
    from drayman.explain.claim import explain_claim
    from drayman.explain.group import explain_group
    from drayman.explain.node import explain_node
    from drayman.explain.pod import explain_pod
    from drayman.explain.workload import explain_job, explain_workload

    explainers: Mapping[str, Callable[[World, Any], Explanation]] = {
        "pod": explain_pod,
        "resourceclaim": explain_claim,
        "job": explain_job,
        POD_GROUP: explain_group,
        WORKLOAD: explain_queued_workload,
        NODE: explain_node,
    }
    return explainers.get(kind, explain_workload)


def _those(objects: Objects, kind: str) -> Iterable[object]:
    """The objects of a kind that were read."""
    those: Mapping[str, Iterable[object]] = {
        "pod": objects.pods,
        "resourceclaim": objects.claims,
        "job": objects.jobs,
        "deployment": objects.deployments,
        "replicaset": objects.replica_sets,
        "statefulset": objects.stateful_sets,
        "daemonset": objects.daemon_sets,
        POD_GROUP: (
            *objects.pod_groups,
            *objects.plugin_pod_groups,
            *objects.kai_pod_groups,
        ),
        WORKLOAD: objects.queued_workloads,
        NODE: objects.nodes,
        NAMESPACE: objects.namespaces,
    }
    return those[kind]


def _no_such_object(world: World, subject: Target, namespace: str) -> NoSuchObjectError:
    """The error, with what may have been meant: a similar name, or the same one in another namespace."""
    keys = [_key(each) for each in _those(world.objects, subject.kind)]
    if not subject.is_namespaced:
        lists = f"`kubectl get {subject.kind}s`"
        meant = did_you_mean(subject.name, {name for _, name in keys}, lists)
        return NoSuchObjectError(f"there is no {subject}{meant}")
    if not _is_known(world, namespace):
        known = {each.metadata.name for each in world.objects.namespaces}
        meant = did_you_mean(namespace, known, "`kubectl get namespaces`")
        return NoSuchObjectError(
            f"there is no {subject}, because there is no namespace {namespace}{meant}"
        )
    said = f"there is no {subject} in namespace {namespace}"
    if elsewhere := sorted(where for where, name in keys if name == subject.name):
        found_in = elsewhere[0]
        return NoSuchObjectError(f"{said}; there is one in namespace {found_in}", found_in=found_in)
    meant = did_you_mean(subject.name, {name for where, name in keys if where == namespace})
    return NoSuchObjectError(f"{said}{meant}", is_elsewhere=not meant)


def _is_known(world: World, namespace: str) -> bool:
    """Whether there is such a namespace, as far as can be seen: users who may not list namespaces may ask about any."""
    names = {each.metadata.name for each in world.objects.namespaces}
    return not names or namespace in names


def _key(value: object) -> tuple[str, str]:
    metadata: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def _is_of(value: object, group: str) -> bool:
    """Whether an object is of an API group; of any, if none is named."""
    api_version: str = getattr(value, "api_version", "")
    return not group or api_version.rpartition("/")[0] == group


def _unseen(world: World, subject: Target, namespace: str) -> QuestionError | None:
    """The error where the object may exist, but the user may not see it."""
    from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
    from drayman.api.kueue_workload import Workload
    from drayman.cluster.resources import (
        DAEMON_SETS,
        DEPLOYMENTS,
        JOBS,
        POD_GROUPS,
        REPLICA_SETS,
        STATEFUL_SETS,
        typed,
    )

    listed: tuple[Resource[Any], ...] = (
        JOBS,
        DEPLOYMENTS,
        REPLICA_SETS,
        STATEFUL_SETS,
        DAEMON_SETS,
        POD_GROUPS,
        typed(PluginPodGroup),
        typed(KaiPodGroup),
        typed(Workload),
    )
    for resource in listed:
        is_meant = resource.kind.lower() == subject.kind and subject.group in ("", resource.group)
        if is_meant and resource.qualified in world.unseen:
            return QuestionError(
                f"this needs the permission to list {resource.qualified} in {namespace}"
            )
    return None
