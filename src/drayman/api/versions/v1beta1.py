"""`resource.k8s.io/v1beta1`, whose devices and requests are shaped differently.

A device keeps everything but its name under `basic`. A request for exact devices has its fields on the request itself, where
v1 has them under `exactly`. A slice's node name and `allNodes` are plain values whose zero means unset. Fields that v1 has
where v1beta1 has none are ignored, as the API server ignores them: conversion must not bring them into effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from drayman.api.resource import Device, ExactDeviceRequest
from drayman.api.struct import Json

Object = dict[str, Json]


_DEVICE_FIELDS: Final = frozenset(Device.__struct_encode_fields__)
_EXACT_FIELDS: Final = frozenset(ExactDeviceRequest.__struct_encode_fields__)

_REQUESTS_PATH: Final = {
    "ResourceClaim": ("spec", "devices"),
    "ResourceClaimTemplate": ("spec", "spec", "devices"),
}
_EXACTLY: Final = re.compile(r"(\bspec\.devices\.requests\[\d+\])\.exactly\b")
_DEVICE_FIELD: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")


def to_v1(kind: str, value: Object) -> tuple[Object, tuple[str, ...]]:
    """The v1 form of an object, and the paths of the fields that v1beta1 ignores."""
    ignored: list[str] = []
    if kind == "ResourceSlice":
        return _update(value, ("spec",), lambda spec: _slice_to_v1(spec, ignored)), tuple(ignored)
    if path := _REQUESTS_PATH.get(kind):
        prefix = ".".join(path)
        converted = _update(value, path, lambda devices: _requests_to_v1(devices, prefix, ignored))
        return converted, tuple(ignored)
    return dict(value), ()


def from_v1(kind: str, value: Object) -> Object:
    """The v1beta1 form of a v1 object."""
    if kind == "ResourceSlice":
        return _update(value, ("spec",), _slice_from_v1)
    if path := _REQUESTS_PATH.get(kind):
        return _update(value, path, _requests_from_v1)
    return dict(value)


def source_path(kind: str, path: str) -> str:
    """Where a field of the v1 form lies in v1beta1."""
    if kind == "ResourceSlice":
        return _DEVICE_FIELD.sub(r"\1.basic.", path)
    return _EXACTLY.sub(r"\1", path)


def _update(value: Object, path: tuple[str, ...], change: Callable[[Object], Object]) -> Object:
    """A copy in which the object at a path is changed. What has another type is left for decoding to complain about."""
    if not path:
        return change(value)
    head, rest = path[0], path[1:]
    inner = value.get(head)
    return {**value, head: _update(inner, rest, change)} if isinstance(inner, dict) else dict(value)


def _each(value: Object, name: str, change: Callable[[int, Object], Object]) -> Object:
    """A copy in which the objects of a list are changed."""
    items = value.get(name)
    if not isinstance(items, list):
        return dict(value)
    changed = [
        change(index, item) if isinstance(item, dict) else item for index, item in enumerate(items)
    ]
    return {**value, name: changed}


def _slice_to_v1(spec: Object, ignored: list[str]) -> Object:
    def change(index: int, device: Object) -> Object:
        return _device_to_v1(device, f"spec.devices[{index}]", ignored)

    converted = _each(spec, "devices", change)
    if converted.get("nodeName") == "":
        del converted["nodeName"]
    if converted.get("allNodes") is False:
        del converted["allNodes"]
    return converted


def _device_to_v1(device: Object, path: str, ignored: list[str]) -> Object:
    basic = device.get("basic")
    misplaced = {name for name in device if name in _DEVICE_FIELDS and name != "name"}
    ignored.extend(f"{path}.{name}" for name in device if name in misplaced)
    if basic is not None and not isinstance(basic, dict):
        return {name: item for name, item in device.items() if name not in misplaced}
    beside = {n: item for n, item in device.items() if n not in misplaced and n != "basic"}
    within = {name: item for name, item in (basic or {}).items() if name != "name"}
    if basic and "name" in basic:
        ignored.append(f"{path}.basic.name")
    return {**beside, **within}


def _slice_from_v1(spec: Object) -> Object:
    def change(_index: int, device: Object) -> Object:
        basic = {name: item for name, item in device.items() if name != "name"}
        named = {"name": device["name"]} if "name" in device else {}
        return {**named, "basic": basic}

    return _each(spec, "devices", change)


def _requests_to_v1(devices: Object, path: str, ignored: list[str]) -> Object:
    def change(index: int, request: Object) -> Object:
        if "exactly" in request:
            ignored.append(f"{path}.requests[{index}].exactly")
        return _request_to_v1(request)

    return _each(devices, "requests", change)


def _request_to_v1(request: Object) -> Object:
    own = {name: item for name, item in request.items() if name in ("name", "firstAvailable")}
    rest = {n: item for n, item in request.items() if n not in own and n != "exactly"}
    if not any(name in _EXACT_FIELDS and _is_set(item) for name, item in rest.items()):
        # None of the fields is set, so this is not an exact request; zeros among them mean nothing.
        unknown = {name: item for name, item in rest.items() if name not in _EXACT_FIELDS}
        return {**own, **unknown}
    return {**own, "exactly": rest}


def _is_set(value: Json) -> bool:
    """Whether a field counts as given: an empty list does, an empty text and a zero do not."""
    return value is not None and value != "" and not (value == 0 and not isinstance(value, bool))


def _requests_from_v1(devices: Object) -> Object:
    def change(_index: int, request: Object) -> Object:
        exactly = request.get("exactly")
        if not isinstance(exactly, dict):
            return dict(request)
        rest = {name: item for name, item in request.items() if name != "exactly"}
        return {**rest, **exactly}

    return _each(devices, "requests", change)
