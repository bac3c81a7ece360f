"""Objects of `resource.k8s.io/v1alpha2` (and v1alpha1): classes, claims and what they refer to.

There a class named a driver, a claim named a class and an object with parameters, and a driver interpreted those. In v1 the claim contains
everything. An object is rewritten only if what it refers to is understood; otherwise it stays unchanged, and that is reported.
"""

from __future__ import annotations

from typing import Final

from drayman.api.resource import GROUP
from drayman.migrate.gpu_selectors import Complain
from drayman.migrate.model import Scope
from drayman.migrate.named_resources import (
    CLAIM_PARAMETERS,
    CLASS_PARAMETERS,
    asked_by,
    filters_of,
)
from drayman.migrate.parameters import (
    INTEL_GROUP,
    NVIDIA_GROUP,
    Asked,
    exact_request,
    reader_of,
)
from drayman.migrate.shapes import (
    Object,
    changed,
    child,
    group_and_version,
    numbered,
    text,
    without,
)
from drayman.migrate.survey import CLAIM_SPECS, node_labels
from drayman.migrate.vendors import NVIDIA, RENAMED_DRIVERS, SHIPPED_CLASSES, of_driver, of_type

_OLD: Final = frozenset({"v1alpha1", "v1alpha2"})
_NEGOTIATION: Final = frozenset({"PodScheduling", "PodSchedulingContext"})
_VENDOR_GROUPS: Final = frozenset({NVIDIA_GROUP, INTEL_GROUP})
_CLASS_FIELDS: Final = ("driverName", "parametersRef", "suitableNodes", "structuredParameters")
_CLAIM_FIELDS: Final = (
    "resourceClassName", "parametersRef", "parameters", "allocationMode", "constraints",
)  # fmt: skip
_SUITABLE: Final = (
    "classes no longer choose nodes; put a node selector on the pods that use the class"
)


def rewrite(value: Object, scope: Scope) -> Object:
    """The object in v1; unchanged if it has another group or version."""
    group, version = group_and_version(value)
    kind = text(value, "kind")
    if is_parameters(value):
        return _parameters(value, group, scope)
    if group != GROUP or version not in _OLD:
        return value
    if kind in _NEGOTIATION:
        scope.remove("removed: the scheduler and drivers no longer negotiate through it")
        return value
    if kind == "ResourceClass":
        return _device_class(value, scope)
    if kind == "ResourceSlice":
        scope.remove("removed: drivers publish their devices again")
        return value
    if kind in CLAIM_SPECS:
        return _claim(value, kind, scope)
    scope.lost("kind", f"{GROUP}/{version} has no kind {kind} that v1 has too; left as it is")
    return value


def is_parameters(value: Object) -> bool:
    """Whether an object only holds details for a claim or class that names it."""
    group, _ = group_and_version(value)
    return group in _VENDOR_GROUPS or (
        group == GROUP and text(value, "kind") in (CLAIM_PARAMETERS, CLASS_PARAMETERS)
    )


def _parameters(value: Object, group: str, scope: Scope) -> Object:
    """Parameters end up in what names them."""
    own = (group, scope.kind, scope.namespace, scope.name)
    origin = child(value, "generatedFrom")
    source = (text(origin, "apiGroup"), text(origin, "kind"), scope.namespace, text(origin, "name"))
    user = scope.survey.referred_parameters.get(own) or scope.survey.referred_parameters.get(source)
    if user is None:
        scope.lost("", "left as it is: nothing in the input refers to it")
    elif {own, source} & scope.survey.still_needed:
        scope.lost("", f"left as it is, as {user} is")
    else:
        scope.remove(f"removed: what it says is now in {user}")
    return value


def _device_class(value: Object, scope: Scope) -> Object:
    structured = child(value, "structuredParameters")
    driver = (
        text(value, "driverName")
        or text(structured, "driverName")
        or text(structured, "generatedFrom", "driverName")
    )
    driver = RENAMED_DRIVERS.get(driver, driver)
    if not driver:
        scope.lost("driverName", "does not name a driver; left as it is")
        return value
    selectors = [SHIPPED_CLASSES.get(scope.name, of_driver(driver))]
    if scope.name in SHIPPED_CLASSES:
        scope.note(
            "", "the driver's own installation brings this class too; one of the two is enough"
        )
    if "suitableNodes" in value:
        scope.lost("suitableNodes", _SUITABLE)
    selectors += _class_parameters(value, driver, scope)
    spec: Object = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
    kept = without(value, *_CLASS_FIELDS, "status")
    return {**kept, "apiVersion": f"{GROUP}/v1", "kind": "DeviceClass", "spec": spec}


def _class_parameters(value: Object, driver: str, scope: Scope) -> list[str]:
    reference = child(value, "parametersRef")
    if not reference:
        return []
    key, found = scope.survey.parameters(text(reference, "namespace"), reference)
    generated = scope.survey.generated(CLASS_PARAMETERS, key)
    if found is None and generated is None:
        scope.lost("parametersRef", f"{key[1]} {key[3]} is not in the input")
        return []
    if generated is not None or key[1] == CLASS_PARAMETERS:
        complain = _about(scope, "parametersRef", CLASS_PARAMETERS)
        return filters_of(generated or found or {}, driver, complain)
    return _device_types(found or {}, driver, scope)


def _device_types(parameters: Object, driver: str, scope: Scope) -> list[str]:
    """NVIDIA's DeviceClassParameters: the types of device that a class gives."""
    types = []
    for place, each in numbered(parameters, "spec", "deviceSelector"):
        if text(each, "name") not in ("", "*"):
            scope.lost("parametersRef", f"deviceSelector[{place}].name chooses devices by name")
        types.append(text(each, "type"))
    if driver != NVIDIA or not types or "*" in types:
        return []
    return [" || ".join(of_type(driver, each) for each in types)]


def _claim(value: Object, kind: str, scope: Scope) -> Object:
    path = CLAIM_SPECS[kind]
    prefix = ".".join(path)
    spec = child(value, *path)
    asked = _asked(spec, prefix, scope)
    if asked is None:
        reference = child(spec, "parametersRef")
        scope.survey.still_needed.add(scope.survey.parameters(scope.namespace, reference)[0])
        return value
    for name in spec:
        if name not in _CLAIM_FIELDS:
            scope.lost(f"{prefix}.{name}", "has no counterpart in v1")
    if spec.get("allocationMode") == "Immediate":
        scope.lost(
            f"{prefix}.allocationMode", "claims are allocated when a pod needs them, never before"
        )
    _constraints(spec, kind, prefix, scope)
    new = changed(value, path, lambda _: {"devices": asked.spec()})
    return {**without(new, "status"), "apiVersion": f"{GROUP}/v1"}


def _asked(spec: Object, prefix: str, scope: Scope) -> Asked | None:
    """What a claim asks for; None where it is not understood, which has then been reported."""
    class_name = text(spec, "resourceClassName")
    class_name = RENAMED_DRIVERS.get(class_name, class_name)
    if inline := child(spec, "parameters"):
        group, _ = group_and_version(inline)
        content = child(inline, "spec") or without(inline, "apiVersion", "kind", "metadata")
        return _read(group, inline, content, class_name, f"{prefix}.parameters", scope)
    reference = child(spec, "parametersRef")
    if not reference:
        return Asked([exact_request("device", class_name)])
    path = f"{prefix}.parametersRef"
    key, found = scope.survey.parameters(scope.namespace, reference)
    generated = scope.survey.generated(CLAIM_PARAMETERS, key)
    if found is None and generated is None:
        scope.lost(path, f"{key[1]} {key[3]} is not in the input; left as it is: give its file too")
        return None
    if found is not None and key[1] != CLAIM_PARAMETERS:
        return _read(key[0], found, child(found, "spec"), class_name, path, scope)
    complain = _about(scope, path, CLAIM_PARAMETERS)
    asked = asked_by(generated or found or {}, class_name, complain)
    if asked is None:
        scope.lost(path, "cannot be expressed in v1; left as it is")
    return asked


def _read(
    group: str, holder: Object, content: Object, class_name: str, path: str, scope: Scope
) -> Asked | None:
    kind = text(holder, "kind")
    reader = reader_of(group, kind)
    if reader is None:
        scope.lost(path, f"the parameters {kind} of {group} are unknown; left as it is")
        return None
    # Parameters within the claim are identified by their path; those in another object by that object.
    complain = scope.lost if path.endswith(".parameters") else _about(scope, path, kind)
    start = path if path.endswith(".parameters") else "spec"
    return reader(content, class_name, start, complain)


def _about(scope: Scope, path: str, kind: str) -> Complain:
    """Remarks about another object, reported at the place that refers to it."""
    return lambda inner, message: scope.lost(path, f"{kind}: {inner}: {message}")


def _constraints(spec: Object, kind: str, prefix: str, scope: Scope) -> None:
    """Claims do not choose nodes; pods do."""
    path = f"{prefix}.constraints"
    for place, constraint in numbered(spec, "constraints"):
        for name in constraint:
            if name != "nodeSelector":
                scope.lost(f"{path}[{place}].{name}", "has no counterpart in v1")
    if not dict(node_labels(spec)):
        return
    if (GROUP, kind, scope.namespace, scope.name) in scope.survey.used_by_pods:
        scope.note(path, "the node selector is now on the pods that use this")
    else:
        scope.lost(
            path, "claims do not choose nodes; put the node selector on the pods that use this"
        )
