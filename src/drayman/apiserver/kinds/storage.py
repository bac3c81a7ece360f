"""Volumes, claims for volumes, and the objects storage drivers work with: what may be written. Controllers bind them."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.validation.field_errors import forbidden, invalid, required, too_long
from drayman.api.validation.names import dns_subdomain, driver_name, label_key
from drayman.api.volume_binding import BOUND
from drayman.apiserver.kinds.checks import (
    immutable,
    label_selector,
    one_of,
    required_name,
    supported,
    unchanged,
)
from drayman.apiserver.kinds.pods.defaults import default_source
from drayman.apiserver.kinds.reading import at, items_at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules, add_finalizer
from drayman.apiserver.served.strategy import Context, Object, restore

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE: Final = "ReadWriteOncePod"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS: Final = 512
_MOST_PARAMETER_BYTES: Final = 256 * 1024
_VOLUME_MODES: Final = ("Block", "Filesystem")
_CHANGEABLE: Final = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def _default_claim(obj: Object, _context: Context) -> None:
    member(obj, "spec").setdefault("volumeMode", "Filesystem")
    set_default(member(obj, "status"), "phase", "Pending")


def _prepare_claim(obj: Object, _context: Context) -> None:
    obj["status"] = {"phase": "Pending"}
    add_finalizer(obj, CLAIM_PROTECTION)


def check_claim_spec(spec: Object, path: str) -> Errors:
    """What a claim for a volume asks for, in a claim or in a template of claims."""
    modes = items_at(spec, "accessModes")
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from supported(mode, f"{path}.accessModes", _ACCESS_MODES)
    if _ALONE in modes and any(mode in _ACCESS_MODES and mode != _ALONE for mode in modes):
        detail = "may not use ReadWriteOncePod with other access modes"
        yield forbidden(f"{path}.accessModes", detail)
    yield from label_selector(spec.get("selector"), f"{path}.selector")
    amount = map_at(spec, "resources", "requests").get("storage")
    if amount is None:
        yield required(f"{path}.resources[storage]")
    elif Quantity.parse(str(amount)) <= Quantity(0):
        yield invalid(f"{path}.resources[storage]", str(amount), "must be greater than zero")
    if name := text_at(spec, "storageClassName"):
        yield from dns_subdomain(name, f"{path}.storageClassName")
    yield from supported(spec.get("volumeMode"), f"{path}.volumeMode", _VOLUME_MODES)


def _check_claim_update(new: Object, old: Object, _context: Context) -> Errors:
    after, before = dict(map_at(new, "spec")), map_at(old, "spec")
    if text_at(old, "status", "phase") == BOUND:
        restore(after, before, "resources")
        restore(after, before, "volumeAttributesClassName")
    if not before.get("volumeName"):
        restore(after, before, "volumeName")
        if before.get("storageClassName") is None:  # one made before there was a default class
            restore(after, before, "storageClassName")
    if after != before:
        yield forbidden("spec", _CHANGEABLE)


def _default_volume(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    set_default(member(obj, "status"), "phase", "Pending")
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def _prepare_volume(obj: Object, context: Context) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now}
    add_finalizer(obj, VOLUME_PROTECTION)


class VolumeStatusRules(StatusRules):
    """The status of a volume, which records since when it is in its phase."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        since, status = at(old, "status", "lastPhaseTransitionTime"), member(new, "status")
        changed = status.get("phase") != text_at(old, "status", "phase")
        # A time that the client gives is kept.
        if changed and status.get("lastPhaseTransitionTime") in (None, since):
            status["lastPhaseTransitionTime"] = context.now


def _check_volume(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    if not items_at(spec, "accessModes"):
        yield required("spec.accessModes")
    for mode in items_at(spec, "accessModes"):
        yield from one_of(mode, "spec.accessModes", _ACCESS_MODES)
    if not spec.get("capacity"):
        yield required("spec.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from one_of(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM)


def _check_capacity(obj: Object, _context: Context) -> Errors:
    yield from label_selector(obj.get("nodeTopology"), "nodeTopology")
    name = text_at(obj, "storageClassName")
    yield from dns_subdomain(name, "storageClassName")
    amount = obj.get("capacity")
    if amount is not None and Quantity.parse(str(amount)) < Quantity(0):
        yield invalid("capacity", str(amount), "must be greater than or equal to 0")


def _check_capacity_update(new: Object, old: Object, _context: Context) -> Errors:
    yield from unchanged(new, old, "nodeTopology")
    yield from unchanged(new, old, "storageClassName")


def _default_class(obj: Object, _context: Context) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _provisioner(obj: Object, name: str) -> Errors:
    yield from required_name(text_at(obj, name).lower(), name, label_key)


def _check_class(obj: Object, _context: Context) -> Errors:
    yield from _provisioner(obj, "provisioner")
    yield from one_of(obj.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    yield from one_of(obj.get("volumeBindingMode"), "volumeBindingMode", _BINDING)


def _forbidden_changes(new: Object, old: Object, *names: str) -> Errors:
    for name in names:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, f"updates to {name} are forbidden.")


def _check_class_update(new: Object, old: Object, _context: Context) -> Errors:
    yield from _forbidden_changes(new, old, "parameters", "provisioner", "reclaimPolicy")
    yield from unchanged(new, old, "volumeBindingMode")


def _check_attributes_class(obj: Object, _context: Context) -> Errors:
    yield from _provisioner(obj, "driverName")
    parameters = map_at(obj, "parameters")
    if "" in parameters:
        yield invalid("parameters", "", "field can not be empty.")
    if not parameters:
        yield required("parameters", "must contain at least one key/value pair")
    size = sum(len(name) + len(value) for name, value in parameters.items())
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long("parameters", _MOST_PARAMETERS)
    elif size > _MOST_PARAMETER_BYTES:
        yield too_long("parameters", _MOST_PARAMETER_BYTES)


def _default_driver(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    set_default(spec, "volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def _prepare_csi_node(obj: Object, _context: Context) -> None:
    """No drivers and an empty list of them are the same, and shown as null."""
    spec = member(obj, "spec")
    if not spec.get("drivers"):
        spec["drivers"] = None


def _check_attachment(obj: Object, _context: Context) -> Errors:
    yield from driver_name(text_at(obj, "spec", "attacher"), "spec.attacher")
    node = text_at(obj, "spec", "nodeName")
    yield from dns_subdomain(node, "spec.nodeName")
    if name := text_at(obj, "spec", "source", "persistentVolumeName"):
        path = "spec.source.persistentVolumeName"
        yield from dns_subdomain(name, path)
    if not any((at(obj, "spec", "source") or {}).values()):
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        yield required("spec.source", detail)


PERSISTENT_VOLUME_CLAIM: Final = Rules(
    defaults=_default_claim,
    prepare=_prepare_claim,
    checks=lambda obj, _context: check_claim_spec(map_at(obj, "spec"), "spec"),
    update_checks=_check_claim_update,
)
PERSISTENT_VOLUME_CLAIM_STATUS: Final = StatusRules()
PERSISTENT_VOLUME: Final = Rules(
    namespaced=False, defaults=_default_volume, prepare=_prepare_volume, checks=_check_volume
)
PERSISTENT_VOLUME_STATUS: Final = VolumeStatusRules()
STORAGE_CLASS: Final = Rules(
    namespaced=False,
    defaults=_default_class,
    checks=_check_class,
    update_checks=_check_class_update,
)
VOLUME_ATTRIBUTES_CLASS: Final = Rules(
    namespaced=False,
    checks=_check_attributes_class,
    update_checks=lambda new, old, _context: _forbidden_changes(
        new, old, "driverName", "parameters"
    ),
)
CSI_STORAGE_CAPACITY: Final = Rules(checks=_check_capacity, update_checks=_check_capacity_update)
CSI_DRIVER: Final = Rules(namespaced=False, defaults=_default_driver)
CSI_NODE: Final = Rules(namespaced=False, prepare=_prepare_csi_node)
VOLUME_ATTACHMENT: Final = Rules(
    namespaced=False, checks=_check_attachment, update_checks=immutable("spec")
)
VOLUME_ATTACHMENT_STATUS: Final = StatusRules()
