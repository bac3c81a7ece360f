"""Pods and groups for tests about gangs, built in few words."""

from __future__ import annotations

from typing import Any, TypeVar

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.custom_groups import CustomObject, KaiPodGroup, KaiTopology, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import Flaw, Gang

CustomT = TypeVar("CustomT", bound=CustomObject)
NAMESPACE = "ml"
INDEX = "batch.kubernetes.io/job-completion-index"


def job_reference(name: str = "train", kind: str = "Job") -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def pod(
    name: str = "p",
    *,
    labels: dict[str, str] | None = None,
    stated: dict[str, str] | None = None,
    group: str = "",
    owner: dict[str, Any] | None = None,
    node: str = "",
    phase: str = "Pending",
    leaving: bool = False,
) -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
    metadata |= {"labels": labels or {}, "annotations": stated or {}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {"nodeName": node}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def _metadata(name: str, stated: dict[str, str] | None) -> dict[str, Any]:
    created = "2026-01-01T00:00:10Z"
    return {
        "name": name,
        "namespace": NAMESPACE,
        "annotations": stated or {},
        "creationTimestamp": created,
    }


def group(spec: dict[str, Any], name: str = "g", stated: dict[str, str] | None = None) -> PodGroup:
    return convert(PodGroup, {"metadata": _metadata(name, stated), "spec": spec})


def custom(
    type_: type[CustomT], spec: Any, name: str = "g", stated: dict[str, str] | None = None
) -> CustomT:
    return convert(type_, {"metadata": _metadata(name, stated), "spec": spec})


def topology(*levels: tuple[str, str], name: str = "racks") -> KaiTopology:
    listed = [{"nodeLabel": label, "alias": alias} for label, alias in levels]
    return convert(KaiTopology, {"metadata": {"name": name}, "spec": {"levels": listed}})


def job(stated: dict[str, str], name: str = "train") -> Job:
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "annotations": stated}
    return convert(Job, {"metadata": metadata})


def read(*objects: Any, of: Pod) -> Gang | Flaw | None:
    """The gang of a pod, with these objects in the cluster."""
    book = GangBook()
    for each in objects:
        enter(book, each)
    book.see(of)
    return book.gang_of(of)


def enter(book: GangBook, value: Any) -> None:
    match value:
        case PodGroup() | PluginPodGroup() | KaiPodGroup():
            book.set_group(value)
        case KaiTopology():
            book.topologies.set(value)
        case Job():
            book.set_job(value)
        case Pod():
            book.see(value)


def gang_in(*objects: Any, of: Pod) -> Gang:
    found = read(*objects, of=of)
    assert isinstance(found, Gang), found
    return found
