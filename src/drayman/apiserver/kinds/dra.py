"""The kinds of `resource.k8s.io`, through the typed rules in `drayman.api`.

Objects are plain JSON here; defaults and validation need them typed. Defaulted parts are put back without their metadata, which
the types do not fully cover.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Final

from drayman.api import validation
from drayman.api.alignment import ALIGN
from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace
from drayman.api.defaults import with_defaults
from drayman.api.errors import DecodeError
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.schema import normalise
from drayman.api.struct import ApiStruct
from drayman.api.validation import FieldError
from drayman.api.validation.claim_status import check_status
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.api.validation.requests import RequestNames
from drayman.api.validation.resource_slice import warnings
from drayman.api.versions import v1beta1
from drayman.apiserver.kinds.reading import at, map_at, member
from drayman.apiserver.kinds.rules import metadata_of
from drayman.apiserver.protocol.limits import LARGE_WORK
from drayman.apiserver.served.recurring import Recurring, RecurringChange, digest_of, size_of
from drayman.apiserver.served.resources import Conversion, GroupVersionKind
from drayman.apiserver.served.shaping import message_of
from drayman.apiserver.served.strategy import (
    LARGE_EXPRESSIONS,
    Context,
    Object,
    StatusStrategy,
    Strategy,
    restore,
)
from drayman.cel.device import check_selector

_NOT_COPIED: Final = (
    f"metadata.annotations[{ALIGN}]: has no effect on a template; put it into spec.metadata.annotations,"
    " which claims are made with"
)
_ADMIN_KINDS: Final = (ResourceClaim, ResourceClaimTemplate)
_WITH_SELECTORS: Final = (*_ADMIN_KINDS, DeviceClass)
_defaults: Final = RecurringChange()
_request_names: Final[Recurring[RequestNames]] = Recurring()
_sound: Final[Recurring[bool]] = Recurring()
"""Specs, by their kind and digest, that are right in any namespace."""


@dataclass(frozen=True, slots=True)
class DeviceKindConversion(Conversion):
    """v1beta1 has another shape; the other versions differ in name only."""

    kind: str

    def to_hub(self, obj: Object, version: str) -> Object:
        if version != "v1beta1":
            return obj
        converted, _ignored = v1beta1.to_v1(self.kind, obj)
        return converted

    def from_hub(self, obj: Object, version: str) -> Object:
        if version != "v1beta1":
            return dict(obj)
        # Some members that v1 omits when empty are always shown in v1beta1.
        return normalise(
            message_of(GroupVersionKind(GROUP, version, self.kind)),
            v1beta1.from_v1(self.kind, obj),
        )


def _default(type_: type[ApiStruct], obj: Object, context: Context) -> None:
    if type_ not in _ADMIN_KINDS or "status" in obj or not isinstance(obj.get("spec"), dict):
        _default_fully(type_, obj, context)
        return

    def change(spec: Object) -> Object:
        whole = {"spec": spec}
        _default_fully(type_, whole, context)
        return whole["spec"]

    obj["spec"] = _defaults.changed(obj["spec"], change, type_, context.version)


def _default_fully(type_: type[ApiStruct], obj: Object, context: Context) -> None:
    value = with_defaults(convert(type_, obj), now=context.now, version=context.version)
    encoded = to_dict(value)
    for name in ("spec", "status"):
        if name in encoded:
            obj[name] = encoded[name]


def _namespace(context: Context, obj: Object) -> Namespace | None:
    found = context.objects.get("namespaces", "", at(obj, "metadata", "namespace") or "")
    return None if found is None else convert(Namespace, found)


@dataclass(frozen=True)
class DeviceKindStrategy(Strategy):
    """The main endpoint of a kind."""

    quick_parts: ClassVar = frozenset({("metadata", "finalizers")})

    type_: type[ApiStruct]

    @property
    def large_from(self) -> int:
        return LARGE_EXPRESSIONS if self.type_ in _WITH_SELECTORS else LARGE_WORK

    def default(self, obj: Object, context: Context) -> None:
        _default(self.type_, obj, context)

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj.pop("status", None)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        if self.type_ is DeviceTaintRule:
            _renew_taint(new, old, context)

    def preparation(self, obj: Object) -> Callable[[], object] | None:
        if self.type_ not in _ADMIN_KINDS or size_of(obj.get("spec")) < self.large_from:
            return None
        is_known = _sound.find((self.type_, digest_of(obj.get("spec"))))
        return None if is_known else partial(self._compile_selectors, obj)

    def _compile_selectors(self, obj: Object) -> None:
        """Sound selectors are known afterwards (`cel.device`)."""
        try:
            value = convert(self.type_, {"spec": obj.get("spec")})
        except DecodeError:
            return  # its write reports that
        validation.validate(value, check_selector)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        digest = digest_of(obj.get("spec")) if self.type_ in _ADMIN_KINDS else None
        known = (self.type_, digest)
        # What an annotation says about the spec is not part of it.
        is_stated = ALIGN in map_at(obj, "metadata", "annotations")
        if digest is not None and not is_stated and _sound.find(known):
            return [*check_metadata(metadata_of(obj), namespaced=True)]
        value = convert(self.type_, obj)
        errors = validation.validate(value, check_selector)
        if isinstance(value, _ADMIN_KINDS):
            errors += validation.check_admin_access(value, _namespace(context, obj))
            if (
                digest is not None
                and not errors
                and not any(validation.check_admin_access(value, None))
            ):
                _sound.keep(known, True)
        return errors

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        after, before = convert(self.type_, new), convert(self.type_, old)
        return validation.validate_update(after, before, check_selector)

    def settle_parts(self, new: Object, old: Object, context: Context) -> bool:
        # An object being deleted may be gone with its last finalizer, and gets no new ones.
        finalizers = new["metadata"].get("finalizers") or ()
        return "deletionTimestamp" not in old["metadata"] and _are_sound(tuple(finalizers))

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        if self.type_ is ResourceClaimTemplate and ALIGN in map_at(new, "metadata", "annotations"):
            return [_NOT_COPIED]
        if self.type_ is not ResourceSlice:
            return []
        return [f"{path}: {message}" for path, message in warnings(convert(ResourceSlice, new))]


@lru_cache(maxsize=1 << 10)
def _are_sound(finalizers: tuple[str, ...]) -> bool:
    """Whether finalizers have valid names."""
    wanted = ObjectMeta(finalizers=finalizers)
    return not any(check_metadata_update(wanted, ObjectMeta()))


def _renew_taint(new: Object, old: Object, context: Context) -> None:
    """A taint whose effect changes counts from now on, unless the client says since when."""
    taint, before = member(member(new, "spec"), "taint"), at(old, "spec", "taint") or {}
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get(
        "timeAdded"
    ):
        taint["timeAdded"] = context.now


@dataclass(frozen=True)
class DeviceKindStatusStrategy(StatusStrategy):
    """The status endpoint of a kind. All metadata stays as it was."""

    reset_fields: ClassVar = (("metadata",), ("spec",))
    keeps_metadata: ClassVar = ("*",)

    quick_parts: ClassVar = frozenset(
        ("status", name) for name in ("allocation", "reservedFor", "devices")
    )

    type_: type[ApiStruct]

    def settle_parts(self, new: Object, old: Object, context: Context) -> bool:
        return self.type_ is ResourceClaim and _is_plain_change(new, old)

    def default(self, obj: Object, context: Context) -> None:
        _default(self.type_, obj, context)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        if self.type_ is ResourceClaim:
            _drop_stale_devices(new, old)

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        after, before = convert(self.type_, new), convert(self.type_, old)
        errors = validation.validate_status(after, before)
        if isinstance(after, ResourceClaim) and isinstance(before, ResourceClaim):
            namespace = _namespace(context, new)
            errors += validation.check_admin_access_status(after, before, namespace)
        return errors


def _drop_stale_devices(new: Object, old: Object) -> None:
    """Remove what drivers reported about devices along with the devices."""
    claim, before = convert(ResourceClaim, new), convert(ResourceClaim, old)
    kept = validation.without_stale_device_status(claim, before).status.devices
    if len(kept) != len(claim.status.devices):
        status = member(new, "status")
        places = {id(device) for device in kept}
        status["devices"] = [
            item
            for item, device in zip(status["devices"], claim.status.devices, strict=True)
            if id(device) in places
        ]


def _is_plain_change(new: Object, old: Object) -> bool:
    """Whether a claim's status changes in an allowed way, with nothing to fill in, to drop or to look up in the namespace."""
    status = convert(ResourceClaimStatus, new.get("status") or {})
    before = convert(ResourceClaimStatus, old.get("status") or {})
    if any(r.admin_access or not all(t.operator for t in r.tolerations) for r in status.results):
        return False
    if before.devices and status.allocation != before.allocation:
        return False
    names = _request_names.of(old.get("spec") or {}, _names_in)
    deleting = "deletionTimestamp" in old["metadata"]
    return not any(check_status(status, before, names, deleting=deleting))


def _names_in(spec: Object) -> RequestNames:
    return RequestNames.of(convert(ResourceClaim, {"spec": spec}).spec.devices)
