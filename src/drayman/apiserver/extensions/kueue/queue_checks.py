"""What Kueue's webhooks refuse about flavors, queues, cohorts, checks and clusters. Objects are in the form of v1beta2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from drayman.api.formats import dns_subdomain_problems, label_key_problems, label_value_problems
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
)
from drayman.apiserver.extensions.kueue.amounts import resource_group_errors, weight_errors
from drayman.apiserver.kinds.checks import label_selector
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.served.strategy import Object

Errors = Iterator[FieldError]

_FORMER: Final[Mapping[str, Mapping[str, str]]] = {
    "clusterqueues": {"cohort": "cohortName", "admissionChecks": "admissionChecksStrategy"},
    "cohorts": {"parent": "parentName"},
    "multikueueclusters": {"kubeConfig": "clusterSource.kubeConfig"},
    "workloads": {
        "priorityClassName": "priorityClassRef",
        "priorityClassSource": "priorityClassRef",
    },
}
"""Members of specs in v1beta1, and what they are called now. Unknown members are kept, and one of these would be a queue that lends to
nobody, with no word about it."""


def former_names(plural: str, obj: Object) -> Errors:
    """Members under the names of the version before."""
    spec = map_at(obj, "spec")
    for before, now in _FORMER.get(plural, {}).items():
        if before in spec:
            yield forbidden(f"spec.{before}", f"is spec.{now} in v1beta2")


def flavor_errors(obj: Object) -> Errors:
    for key, value in map_at(obj, "spec", "nodeLabels").items():
        yield from invalid_each("spec.nodeLabels", key, label_key_problems(key))
        yield from invalid_each("spec.nodeLabels", value, label_value_problems(str(value)))
    seen: set[tuple[str, str]] = set()
    for path, taint in each_at(obj, "", "spec", "nodeTaints"):
        key, effect = text_at(taint, "key"), text_at(taint, "effect")
        yield from invalid_each(f"{path}.key", key, label_key_problems(key))
        value = text_at(taint, "value")
        yield from invalid_each(f"{path}.value", value, label_value_problems(value))
        if (key, effect) in seen:
            yield duplicate(path, f"{key}:{effect}")
        seen.add((key, effect))
    for path, toleration in each_at(obj, "", "spec", "tolerations"):
        yield from _toleration_errors(toleration, path)


def _toleration_errors(toleration: Object, path: str) -> Errors:
    key, operator = text_at(toleration, "key"), text_at(toleration, "operator")
    if key:
        yield from invalid_each(f"{path}.key", key, label_key_problems(key))
    elif operator != "Exists":
        detail = "operator must be Exists when `key` is empty, which means match all values"
        yield invalid(f"{path}.operator", operator, detail)
    if operator == "Exists" and text_at(toleration, "value"):
        detail = "value must be empty when `operator` is 'Exists'"
        yield invalid(f"{path}.operator", text_at(toleration, "value"), detail)
    if (
        toleration.get("tolerationSeconds") is not None
        and text_at(toleration, "effect") != "NoExecute"
    ):
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", text_at(toleration, "effect"), detail)


def cluster_queue_errors(obj: Object) -> Errors:
    yield from resource_group_errors(obj, parent="cohortName", lends_own=True)
    yield from weight_errors(obj)
    spec = map_at(obj, "spec")
    if spec.get("namespaceSelector") is not None:
        yield from label_selector(spec["namespaceSelector"], "spec.namespaceSelector")
    yield from _name_errors(obj, "cohortName")
    known = {
        text_at(flavor, "name")
        for group in items_at(spec, "resourceGroups")
        for flavor in items_at(group, "flavors")
    }
    checks = each_at(spec, "spec", "admissionChecksStrategy", "admissionChecks")
    for path, check in checks:
        for number, name in enumerate(items_at(check, "onFlavors")):
            if name not in known:
                detail = "is not a flavor of this ClusterQueue"
                yield invalid(f"{path}.onFlavors[{number}]", name, detail)


def cohort_errors(obj: Object) -> Errors:
    """Cycles are not among them: one can come about by changing any of its cohorts. They are reported as inactive queues."""
    yield from resource_group_errors(obj, parent="parentName", lends_own=False)
    yield from weight_errors(obj)
    yield from _name_errors(obj, "parentName")


def local_queue_errors(obj: Object) -> Errors:
    yield from weight_errors(obj)
    yield from _name_errors(obj, "clusterQueue")


def _name_errors(obj: Object, name: str) -> Errors:
    value = text_at(obj, "spec", name)
    if value:
        yield from invalid_each(f"spec.{name}", value, dns_subdomain_problems(value))


def check_errors(obj: Object) -> Errors:
    if not text_at(obj, "spec", "controllerName"):
        yield required("spec.controllerName")
    parameters = map_at(obj, "spec", "parameters")
    if parameters:
        for name in ("apiGroup", "name"):
            value = text_at(parameters, name)
            yield from invalid_each(f"spec.parameters.{name}", value, dns_subdomain_problems(value))


def remote_cluster_errors(obj: Object) -> Errors:
    if not map_at(obj, "spec", "clusterSource"):
        yield required("spec.clusterSource")
