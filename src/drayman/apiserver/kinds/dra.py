"""The kinds of `resource.k8s.io`, by way of the typed rules in `drayman.api`.

Objects are plain JSON here; defaults and validation want them typed. Defaulted parts are put back without their metadata, which
the types do not know in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from drayman.api import validation
from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace
from drayman.api.defaults import with_defaults
from drayman.api.resource import (
    GROUP,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.schema import normalise
from drayman.api.struct import ApiStruct
from drayman.api.validation import FieldError, SelectorChecker
from drayman.api.validation.resource_slice import warnings
from drayman.api.versions import v1beta1
from drayman.apiserver.kinds.reading import at, member
from drayman.apiserver.resources import Conversion, GroupVersionKind
from drayman.apiserver.shaping import message_of
from drayman.apiserver.strategy import Context, Object, StatusStrategy, Strategy, restore

_ADMIN_KINDS: Final = (ResourceClaim, ResourceClaimTemplate)


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
        # Some members that v1 leaves out when empty always show in v1beta1.
        return normalise(
            message_of(GroupVersionKind(GROUP, version, self.kind)),
            v1beta1.from_v1(self.kind, obj),
        )


def _default(type_: type[ApiStruct], obj: Object, context: Context) -> None:
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

    type_: type[ApiStruct]
    selectors: SelectorChecker

    def default(self, obj: Object, context: Context) -> None:
        _default(self.type_, obj, context)

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj.pop("status", None)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        if self.type_ is DeviceTaintRule:
            _renew_taint(new, old, context)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        value = convert(self.type_, obj)
        errors = validation.validate(value, self.selectors)
        if isinstance(value, _ADMIN_KINDS):
            errors += validation.check_admin_access(value, _namespace(context, obj))
        return errors

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        after, before = convert(self.type_, new), convert(self.type_, old)
        return validation.validate_update(after, before, self.selectors)

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        if self.type_ is not ResourceSlice:
            return []
        return [f"{path}: {message}" for path, message in warnings(convert(ResourceSlice, new))]


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

    type_: type[ApiStruct]

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
    """What drivers reported about devices goes with the devices."""
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
