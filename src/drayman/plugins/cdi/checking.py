"""The rules of a specification, as problems that name the field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from drayman.api.formats import label_key_problems
from drayman.plugins.cdi.model import ContainerEdits, DeviceNode, Hook, Spec
from drayman.plugins.cdi.versions import VERSIONS, lowest_version

HOOKS: Final = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)
_NODE_TYPES: Final = ("", "b", "c", "u", "p")
_VENDOR: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DEVICE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")

Problems = Iterator[str]


def problems_of(spec: Spec) -> list[str]:
    """What is wrong with a specification, each with its field; empty if nothing is."""
    return list(_spec(spec))


def _spec(spec: Spec) -> Problems:
    yield from _version(spec)
    if not _VENDOR.fullmatch(spec.vendor):
        yield f"kind: {spec.kind!r} has no vendor that looks like a DNS name, as in vendor.com/class"
    elif not _CLASS.fullmatch(spec.class_):
        yield f"kind: {spec.kind!r} has no class of up to 63 letters, digits, '_', '-' and '.'"
    yield from _annotations(spec.annotations, "annotations")
    if not spec.devices:
        yield "devices: at least one is required"
    seen: set[str] = set()
    for at, device in enumerate(spec.devices):
        path = f"devices[{at}]"
        if not _DEVICE.fullmatch(device.name):
            yield f"{path}.name: {device.name!r} is no name of letters, digits, '_', '-', '.' and ':'"
        if device.name in seen:
            yield f"{path}.name: {device.name!r} is there twice"
        seen.add(device.name)
        yield from _annotations(device.annotations, f"{path}.annotations")
        if device.container_edits.is_empty:
            yield f"{path}.containerEdits: at least one is required"
        yield from _edits(device.container_edits, f"{path}.containerEdits")
    yield from _edits(spec.container_edits, "containerEdits")


def _version(spec: Spec) -> Problems:
    if spec.cdi_version not in VERSIONS:
        yield f"cdiVersion: {spec.cdi_version!r} is not known here; known are {', '.join(VERSIONS)}"
        return
    needed = lowest_version(spec)
    if VERSIONS.index(spec.cdi_version) < VERSIONS.index(needed):
        yield f"cdiVersion: {spec.cdi_version} has not all of the fields that are used; they need {needed}"


def _annotations(annotations: dict[str, str], path: str) -> Problems:
    for key in annotations:
        for problem in label_key_problems(key.lower()):
            yield f"{path}[{key}]: {problem}"


def _edits(edits: ContainerEdits, path: str) -> Problems:
    yield from _env(edits.env, f"{path}.env")
    for at, node in enumerate(edits.device_nodes):
        yield from _node(node, f"{path}.deviceNodes[{at}]")
    for at, mount in enumerate(edits.mounts):
        for name, value in (
            ("hostPath", mount.host_path),
            ("containerPath", mount.container_path),
        ):
            if not value:
                yield f"{path}.mounts[{at}].{name}: a value is required"
    for at, hook in enumerate(edits.hooks):
        yield from _hook(hook, f"{path}.hooks[{at}]")
    names = Counter(device.name for device in edits.net_devices)
    for at, device in enumerate(edits.net_devices):
        if not device.host_interface_name or not device.name:
            yield f"{path}.netDevices[{at}]: hostInterfaceName and name are required"
        elif names[device.name] > 1:
            yield f"{path}.netDevices[{at}].name: {device.name!r} is there twice"


def _env(variables: tuple[str, ...], path: str) -> Problems:
    for at, variable in enumerate(variables):
        name, equals, _ = variable.partition("=")
        if not equals or not name:
            yield f"{path}[{at}]: {variable!r} is not NAME=value"


def _node(node: DeviceNode, path: str) -> Problems:
    if not node.path:
        yield f"{path}.path: a value is required"
    if node.type_ not in _NODE_TYPES:
        yield f"{path}.type: {node.type_!r} is none of b, c, u, p"
    if node.permissions != "none" and not set(node.permissions) <= set("rwm"):
        yield f"{path}.permissions: {node.permissions!r} has other letters than r, w, m"


def _hook(hook: Hook, path: str) -> Problems:
    if hook.hook_name not in HOOKS:
        yield f"{path}.hookName: {hook.hook_name!r} is none of {', '.join(HOOKS)}"
    if not PurePosixPath(hook.path).is_absolute():
        yield f"{path}.path: {hook.path!r} is no absolute path"
    yield from _env(hook.env, f"{path}.env")
