"""The status of a pod: what may be written, and how it tells the state of claims."""

from __future__ import annotations

from drayman.api import formats
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.quantity import Quantity
from drayman.api.validation.field_errors import forbidden, invalid, invalid_each, required
from drayman.api.validation.pod import validate_pod_status
from drayman.apiserver.kinds.checks import IMMUTABLE
from drayman.apiserver.kinds.pods.resources import is_native_resource
from drayman.apiserver.kinds.pods.updating import check_annotation_changes
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.strategy import Context, Object


def check_pod_status(new: Object, old: Object, _context: Context) -> Errors:
    yield from check_annotation_changes(new, old)
    yield from _nominated_node(new, old)
    generation = at(new, "status", "observedGeneration")
    if generation is not None and generation < 0:
        yield invalid("status.observedGeneration", generation, "must be a non-negative integer")
    quality, before = text_at(new, "status", "qosClass"), text_at(old, "status", "qosClass")
    if quality != before:
        yield invalid("status.qosClass", quality, IMMUTABLE)
    status = map_at(new, "status")
    if status.get("resourceClaimStatuses") or status.get("extendedResourceClaimStatus"):
        yield from validate_pod_status(convert(Pod, {"spec": new["spec"], "status": status}))
    for where, item in each_at(status, "status", "nodeAllocatableResourceClaimStatuses"):
        yield from _node_allocatable(new, item, where)


def _nominated_node(new: Object, old: Object) -> Errors:
    path = "status.nominatedNodeName"
    name, before = text_at(new, "status", "nominatedNodeName"), text_at(old, *path.split("."))
    if not name or name == before:
        return
    yield from invalid_each(path, name, formats.dns_subdomain_problems(name))
    if text_at(old, "spec", "nodeName"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _node_allocatable(pod: Object, item: Object, path: str) -> Errors:
    """Resources of the node that a claim uses up. The claim must be one of the pod's."""
    name = text_at(item, "resourceClaimName")
    claims = (
        *items_at(pod, "spec", "resourceClaims"),
        *items_at(pod, "status", "resourceClaimStatuses"),
    )
    if not name:
        yield required(f"{path}.resourceClaimName")
    elif not any(text_at(claim, "resourceClaimName") == name for claim in claims):
        yield invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference")
    if not items_at(item, "containers"):
        yield required(f"{path}.containers", "must not be empty")
    for resource, amount in map_at(item, "resources").items():
        place = f"{path}.resources[{resource}]"
        if not is_native_resource(resource):
            yield invalid(place, resource, "must be a node allocatable resource name")
        elif Quantity.parse(str(amount)) < Quantity(0):
            yield invalid(place, str(amount), "must be non-negative")
