"""Security contexts, of a pod and of its containers. Options for Windows are not checked."""

from __future__ import annotations

import re
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from drayman.apiserver.kinds.checks import MAX_INT32, supported
from drayman.apiserver.kinds.pods.paths import descending
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_IDS: Final = ("fsGroup", "runAsUser", "runAsGroup")
_ID_RULE: Final = f"must be between 0 and {MAX_INT32}, inclusive"
_PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_CHOICES: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}
_PROC_MOUNTS: Final = ("Default", "Unmasked")
_SYSCTL_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = re.compile(rf"({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}")
_SYSCTL_LENGTH: Final = 253
_LONGEST_PATH: Final = 4095
_NO_ESCALATION: Final = "cannot set `allowPrivilegeEscalation` to false and"


def check_pod_security(spec: Object, path: str) -> Errors:
    context = map_at(spec, "securityContext")
    place = f"{path}.securityContext"
    if context:
        yield from _ids(context, place)
        for index, group in enumerate(items_at(context, "supplementalGroups")):
            yield from _id(group, f"{place}.supplementalGroups[{index}]")
        yield from _sysctls(context, place)
        for name, choices in _CHOICES.items():
            yield from supported(context.get(name), f"{place}.{name}", choices)
        yield from _profiles(context, place)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{place}.shareProcessNamespace", True, detail)
    if spec.get("hostUsers") is False:
        # The odd names are upstream's.
        for name, field in (
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ):
            if spec.get(name):
                yield forbidden(f"{path}.{field}", "when `hostUsers` is false")


def check_container_security(context: Object, path: str, *, host_users: bool) -> Errors:
    yield from _ids(context, path)
    if (mount := context.get("procMount")) is not None:
        if mount not in _PROC_MOUNTS:
            yield not_supported(f"{path}.procMount", mount, _PROC_MOUNTS)
        elif mount == "Unmasked" and host_users:
            detail = "`hostUsers` must be false to use `Unmasked`"
            yield invalid(f"{path}.procMount", mount, detail)
    yield from _profiles(context, path)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            yield invalid(path, context, f"{_NO_ESCALATION} `privileged` to true")
        if "CAP_SYS_ADMIN" in items_at(context, "capabilities", "add"):
            yield invalid(path, context, f"{_NO_ESCALATION} `capabilities.Add` CAP_SYS_ADMIN")


def _ids(context: Object, path: str) -> Errors:
    for name in _IDS:
        if name in context:
            yield from _id(context[name], f"{path}.{name}")


def _id(value: Json, path: str) -> Errors:
    if isinstance(value, int) and not 0 <= value <= MAX_INT32:
        yield invalid(path, value, _ID_RULE)


def _sysctls(context: Object, path: str) -> Errors:
    names: set[str] = set()
    for where, sysctl in each_at(context, path, "sysctls"):
        name = text_at(sysctl, "name")
        if not name:
            yield required(f"{where}.name")
        elif len(name) > _SYSCTL_LENGTH or not _SYSCTL.fullmatch(name):
            detail = (
                f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL.pattern}$"
            )
            yield invalid(f"{where}.name", name, detail)
        elif name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)


def _profiles(context: Object, path: str) -> Errors:
    """The profiles that define which system calls and files are allowed."""
    if isinstance(profile := context.get("seccompProfile"), dict):
        yield from _profile(profile, "seccomp", f"{path}.seccompProfile")
        local = profile.get("localhostProfile")
        if profile.get("type") == "Localhost" and local is not None:
            yield from descending(local, f"{path}.seccompProfile.localhostProfile")
    if isinstance(profile := context.get("appArmorProfile"), dict):
        yield from _profile(profile, "AppArmor", f"{path}.appArmorProfile")
        yield from _padding(profile, f"{path}.appArmorProfile.localhostProfile")


def _profile(profile: Object, system: str, path: str) -> Errors:
    kind, local = text_at(profile, "type"), profile.get("localhostProfile")
    field = "seccompProfile" if system == "seccomp" else "appArmorProfile"
    if not kind:
        yield required(f"{path}.type", f"type is required when {field} is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if local is None:
            detail = f"must be set when {system} type is Localhost"
            yield required(f"{path}.localhostProfile", detail)
    elif local is not None and (system == "seccomp" or kind in _PROFILE_TYPES):
        detail = f"can only be set when {system} type is Localhost"
        yield invalid(f"{path}.localhostProfile", local, detail)


def _padding(profile: Object, path: str) -> Errors:
    local = profile.get("localhostProfile")
    if profile.get("type") != "Localhost" or local is None:
        return
    if local != local.strip():
        yield invalid(path, local, "must not be padded with whitespace")
    elif not local:
        yield required(path, "must be set when AppArmor type is Localhost")
    if len(local.encode()) > _LONGEST_PATH:
        yield too_long(path, _LONGEST_PATH)
