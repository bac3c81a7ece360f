"""What Kueue's webhooks refuse about Workloads. Objects are in the form of v1beta2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.api.formats import dns_label_problems, dns_subdomain_problems
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    forbidden,
    invalid,
    invalid_each,
    not_found,
)
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, number_at, text_at
from drayman.apiserver.served.strategy import Object
from drayman.workloads.queued.names import ELASTIC

Errors = Iterator[FieldError]

_RESERVED: Final = "QuotaReserved"
_IMMUTABLE: Final = "field is immutable while quota is reserved"
_FIXED_WHILE_RESERVED: Final = (
    "podSets",
    "queueName",
    "priorityClassRef",
    "maximumExecutionTimeSeconds",
)


def workload_errors(obj: Object) -> Errors:
    """What is wrong with a Workload on its own, its status included."""
    variable = 0
    for path, pod_set in each_at(obj, "", "spec", "podSets"):
        name = text_at(pod_set, "name")
        if name:
            yield from invalid_each(f"{path}.name", name, dns_label_problems(name))
        variable += pod_set.get("minCount") is not None
        others = set(map_at(pod_set, "template", "metadata")) - {"labels", "annotations"}
        others -= {
            "creationTimestamp"
        }  # Written by every tool that has the whole type, always null.
        for other in sorted(others):
            detail = "only labels and annotations may be set"
            yield forbidden(f"{path}.template.metadata.{other}", detail)
    if variable > 1:
        yield invalid("spec.podSets", variable, "at most one podSet can use minCount")
    queue = text_at(obj, "spec", "queueName")
    if queue:
        yield from invalid_each("spec.queueName", queue, dns_subdomain_problems(queue))
    yield from _status_errors(obj)


def _status_errors(obj: Object) -> Errors:
    counts = {
        text_at(pod_set, "name") or "main": number_at(pod_set, "count")
        for pod_set in items_at(obj, "spec", "podSets")
    }
    for path, assignment in each_at(obj, "", "status", "admission", "podSetAssignments"):
        name = text_at(assignment, "name") or "main"
        if name not in counts:
            yield not_found(f"{path}.name", name, "is not a pod set of the workload")
        elif number_at(assignment, "count") > counts[name]:
            detail = f"must not be greater than the pod set's count, {counts[name]}"
            yield invalid(f"{path}.count", number_at(assignment, "count"), detail)
    for path, reclaimable in each_at(obj, "", "status", "reclaimablePods"):
        name, count = text_at(reclaimable, "name"), number_at(reclaimable, "count")
        if name not in counts:
            yield not_found(f"{path}.name", name, "is not a pod set of the workload")
        elif count > counts[name]:
            detail = f"must not be greater than the pod set's count, {counts[name]}"
            yield invalid(f"{path}.count", count, detail)
    for path, check in each_at(obj, "", "status", "admissionChecks"):
        for where, update in each_at(check, path, "podSetUpdates"):
            if text_at(update, "name") not in counts:
                detail = "is not a pod set of the workload"
                yield not_found(f"{where}.name", text_at(update, "name"), detail)


def workload_update_errors(new: Object, old: Object) -> Errors:
    """What may not change while quota is reserved."""
    before, after = map_at(old, "spec"), map_at(new, "spec")
    if _is_reserved(old) and _is_reserved(new):
        for name in _FIXED_WHILE_RESERVED:
            if before.get(name) != after.get(name) and not _may_change(name, new, old):
                yield invalid(f"spec.{name}", _shown(after.get(name)), _IMMUTABLE)
        yield from _admission_errors(new, old)
        yield from _reclaim_errors(new, old)


def _may_change(name: str, new: Object, old: Object) -> bool:
    """What may change all the same: the class of queues that says how important it is, and the size of what is elastic, downwards."""
    if name == "priorityClassRef":
        after, before = map_at(new, "spec", name), map_at(old, "spec", name)
        return text_at(after, "group") == KUEUE and text_at(before, "group") in ("", KUEUE)
    if name == "podSets" and map_at(old, "metadata", "annotations").get(ELASTIC) == "true":
        pairs = zip(items_at(new, "spec", name), items_at(old, "spec", name), strict=False)
        same_number = len(items_at(new, "spec", name)) == len(items_at(old, "spec", name))
        return same_number and all(
            number_at(after, "count") <= number_at(before, "count")
            and {**after, "count": 0} == {**before, "count": 0}
            for after, before in pairs
        )
    return False


def _admission_errors(new: Object, old: Object) -> Errors:
    before, after = map_at(old, "status", "admission"), map_at(new, "status", "admission")
    queue = text_at(after, "clusterQueue")
    if before and after and queue != text_at(before, "clusterQueue"):
        yield invalid("status.admission.clusterQueue", queue, _IMMUTABLE)


def _reclaim_errors(new: Object, old: Object) -> Errors:
    """Pods that have ended do not come back."""
    before = {
        text_at(each, "name"): number_at(each, "count")
        for each in items_at(old, "status", "reclaimablePods")
    }
    after = {
        text_at(each, "name"): number_at(each, "count")
        for each in items_at(new, "status", "reclaimablePods")
    }
    for name, count in before.items():
        if after.get(name, 0) < count:
            detail = f"pod set {name}: must not be less than {count} while quota is reserved"
            yield invalid("status.reclaimablePods", after.get(name, 0), detail)


def _is_reserved(obj: Object) -> bool:
    return any(
        text_at(each, "type") == _RESERVED and text_at(each, "status") == "True"
        for each in items_at(obj, "status", "conditions")
    )


def _shown(value: Json) -> Json:
    """Pod sets are too long for a message."""
    return f"{len(value)} pod sets" if isinstance(value, list) else value
