"""Objects of `resource.k8s.io` from v1alpha3, v1beta1 and v1beta2 to v1.

The conversion itself is that of the API server. v1alpha3 had the shape of v1beta1 with a few more fields, which have no counterpart, and
with capacities as bare quantities. Rules that taint devices are not in v1 before 1.37; they become v1beta2.
"""

from __future__ import annotations

from typing import Final

from drayman.api.resource import GROUP
from drayman.api.versions import VERSIONS, v1beta1
from drayman.migrate.model import Scope
from drayman.migrate.shapes import (
    Object,
    changed,
    changed_items,
    child,
    group_and_version,
    text,
    without,
)
from drayman.migrate.survey import CLAIM_SPECS

_OLD: Final = frozenset({"v1alpha3", "v1beta1", "v1beta2"})
_STILL_ALPHA: Final = frozenset({"ResourcePoolStatusRequest"})
_TAINT_RULE: Final = "DeviceTaintRule"
_TAINT_RULE_VERSION: Final = "v1beta2"
_ALPHA3_TAINT_SELECTOR: Final = ("deviceClassName", "selectors")


def to_v1(value: Object, scope: Scope) -> Object:
    """The object in the current version; unchanged where it already has that or belongs to another group."""
    group, version = group_and_version(value)
    kind = text(value, "kind")
    if group != GROUP or version not in _OLD:
        return value
    if kind == "PodSchedulingContext":
        scope.remove("removed: the scheduler and drivers no longer negotiate through it")
        return value
    if kind in _STILL_ALPHA:
        return value
    if kind not in VERSIONS:
        scope.lost("kind", f"{GROUP}/{version} has no kind {kind} that v1 has too; left as it is")
        return value
    if kind == _TAINT_RULE:
        return _taint_rule(value, version, scope)
    if version == "v1alpha3":
        value = _beta1_of_alpha3(value, kind, scope)
    if version in ("v1alpha3", "v1beta1"):
        value, ignored = v1beta1.to_v1(kind, value)
        for path in ignored:
            scope.lost(path, f"{version} has no such field and ignores it, so it is left out")
    return {**value, "apiVersion": f"{GROUP}/v1"}


def _beta1_of_alpha3(value: Object, kind: str, scope: Scope) -> Object:
    if kind == "DeviceClass" and "suitableNodes" in child(value, "spec"):
        scope.lost(
            "spec.suitableNodes",
            "classes no longer choose nodes; put a node selector on the pods that use the class",
        )
        return changed(value, ("spec",), lambda spec: without(spec, "suitableNodes"))
    if kind in CLAIM_SPECS and "controller" in child(value, *CLAIM_SPECS[kind]):
        path = CLAIM_SPECS[kind]
        scope.lost(
            ".".join((*path, "controller")),
            "drivers with a controller of their own for allocation are no longer supported",
        )
        return changed(value, path, lambda spec: without(spec, "controller"))
    if kind == "ResourceSlice":
        return changed(value, ("spec",), lambda spec: changed_items(spec, "devices", _capacities))
    return value


def _capacities(_index: int, device: Object) -> Object:
    """v1alpha3 has capacities as quantities, later versions as objects with a value."""

    def valued(capacity: Object) -> Object:
        return {
            name: item if isinstance(item, dict) else {"value": item}
            for name, item in capacity.items()
        }

    return changed(device, ("basic", "capacity"), valued)


def _taint_rule(value: Object, version: str, scope: Scope) -> Object:
    if version != "v1alpha3":
        return value
    for name in _ALPHA3_TAINT_SELECTOR:
        if name in child(value, "spec", "deviceSelector"):
            scope.lost(
                f"spec.deviceSelector.{name}",
                "rules no longer choose devices by this, and without it the rule would taint more;"
                " left as it is: name driver, pool or device",
            )
            return value
    return {**value, "apiVersion": f"{GROUP}/{_TAINT_RULE_VERSION}"}
