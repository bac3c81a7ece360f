"""Groups of pods that start together: from the coscheduling plugin's PodGroup to Kubernetes' own.

Kubernetes' own is alpha in 1.36, and a cluster with the plugin does not need it, so this is done only on request.
"""

from __future__ import annotations

from typing import Final

from drayman.migrate.model import Scope
from drayman.migrate.shapes import Object, Path, changed, child, group_and_version, text, without

_OLD: Final = "scheduling.x-k8s.io"
_NEW: Final = "scheduling.k8s.io/v1alpha2"
_KIND: Final = "PodGroup"
_LABEL: Final = "scheduling.x-k8s.io/pod-group"
_LOST: Final = {
    "scheduleTimeoutSeconds": "a group waits for its pods without a time limit",
    "minResources": "the devices and resources of the pods themselves are what counts",
}


def rewrite(value: Object, scope: Scope) -> Object:
    """The group as Kubernetes' own kind; any other object unchanged."""
    if group_and_version(value)[0] != _OLD or text(value, "kind") != _KIND:
        return value
    if not scope.survey.with_pod_groups:
        scope.note("", "left as it is; --pod-groups makes it one of Kubernetes itself")
        return value
    spec = child(value, "spec")
    for name in without(spec, "minMember"):
        scope.lost(f"spec.{name}", _LOST.get(name, f"has no counterpart in {_NEW}"))
    policy: Object = {"gang": {"minCount": spec.get("minMember", 1)}}
    kept = without(value, "status")
    return {**kept, "apiVersion": _NEW, "spec": {"schedulingPolicy": policy}}


def join(value: Object, path: Path, scope: Scope) -> Object:
    """The object with its pods naming the group that their label gives."""
    labels = child(value, *path[:-1], "metadata", "labels")
    name = text(labels, _LABEL)
    group = scope.survey.found.get((_OLD, _KIND, scope.namespace, name))
    if not (name and scope.survey.with_pod_groups and group):
        return value

    def change(spec: Object) -> Object:
        return (
            spec
            if "schedulingGroup" in spec
            else {**spec, "schedulingGroup": {"podGroupName": name}}
        )

    return changed(value, path, change)
