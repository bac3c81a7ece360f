"""Volumes, claims for volumes, and the objects storage drivers work with. Nothing here provisions anything."""

from __future__ import annotations

from typing import Final

from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.apiserver.kinds.checks import one_of, unchanged
from drayman.apiserver.kinds.reading import at, items_at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.strategy import Context, Object, restore

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_CHANGEABLE: Final = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def _protected(finalizer: str, obj: Object) -> None:
    metadata = obj["metadata"]
    if finalizer not in items_at(metadata, "finalizers"):
        metadata["finalizers"] = [*items_at(metadata, "finalizers"), finalizer]


def _default_claim(obj: Object, _context: Context) -> None:
    member(obj, "spec").setdefault("volumeMode", "Filesystem")
    set_default(member(obj, "status"), "phase", "Pending")


def _prepare_claim(obj: Object, _context: Context) -> None:
    obj["status"] = {"phase": "Pending"}
    _protected(CLAIM_PROTECTION, obj)


def _check_claim(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    modes = items_at(spec, "accessModes")
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from one_of(mode, "spec.accessModes", _ACCESS_MODES)
    if not map_at(spec, "resources", "requests").get("storage"):
        yield required("spec.resources[storage]")
    yield from one_of(spec.get("volumeMode"), "spec.volumeMode", _VOLUME_MODES, needed=False)


def _check_claim_update(new: Object, old: Object, _context: Context) -> Errors:
    after, before = dict(map_at(new, "spec")), map_at(old, "spec")
    if text_at(old, "status", "phase") == "Bound":
        restore(after, before, "resources")
        restore(after, before, "volumeAttributesClassName")
    if not before.get("volumeName"):
        restore(after, before, "volumeName")
    if after != before:
        yield forbidden("spec", _CHANGEABLE)


def _default_volume(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    set_default(member(obj, "status"), "phase", "Pending")
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def _prepare_volume(obj: Object, context: Context) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now}
    _protected(VOLUME_PROTECTION, obj)


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


def _default_class(obj: Object, _context: Context) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _check_class(obj: Object, _context: Context) -> Errors:
    if not text_at(obj, "provisioner"):
        yield required("provisioner")
    yield from one_of(obj.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    yield from one_of(obj.get("volumeBindingMode"), "volumeBindingMode", _BINDING)


def _check_class_update(new: Object, old: Object, _context: Context) -> Errors:
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        yield forbidden("parameters", "updates to parameters are forbidden.")
    for name in ("provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            yield forbidden(name, f"updates to {name} are forbidden.")
    yield from unchanged(new, old, "volumeBindingMode")


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
    for name in ("attacher", "nodeName"):
        if not text_at(obj, "spec", name):
            yield required(f"spec.{name}")
    if not any((at(obj, "spec", "source") or {}).values()):
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        yield required("spec.source", detail)


def _check_attachment_update(new: Object, old: Object, _context: Context) -> Errors:
    if new.get("spec") != old.get("spec"):
        yield invalid("spec", new.get("spec"), "field is immutable")


PERSISTENT_VOLUME_CLAIM: Final = Rules(
    defaults=_default_claim,
    prepare=_prepare_claim,
    checks=_check_claim,
    update_checks=_check_claim_update,
)
PERSISTENT_VOLUME_CLAIM_STATUS: Final = StatusRules()
PERSISTENT_VOLUME: Final = Rules(
    namespaced=False, defaults=_default_volume, prepare=_prepare_volume, checks=_check_volume
)
PERSISTENT_VOLUME_STATUS: Final = StatusRules()
STORAGE_CLASS: Final = Rules(
    namespaced=False,
    defaults=_default_class,
    checks=_check_class,
    update_checks=_check_class_update,
)
CSI_DRIVER: Final = Rules(namespaced=False, defaults=_default_driver)
CSI_NODE: Final = Rules(namespaced=False, prepare=_prepare_csi_node)
VOLUME_ATTACHMENT: Final = Rules(
    namespaced=False, checks=_check_attachment, update_checks=_check_attachment_update
)
VOLUME_ATTACHMENT_STATUS: Final = StatusRules()
