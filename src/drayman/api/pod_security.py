"""Pod Security Standards: which levels a namespace names, and what a pod does that a level forbids.

The checks, the versions from which each applies, their order and their texts are those of Kubernetes 1.36 (k8s.io/pod-security-admission).
A check may have several revisions: policy version `v1.N` takes the newest one from before or at 1.N, and `latest` the newest one of all.
Versions later than the newest revision are the same as `latest`, as in Kubernetes.

Pods are decoded JSON as the server stores them, because the fields that matter here are many and no other package reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, field

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.formats import dns_label_problems, dns_subdomain_problems
from drayman.api.shape import Record, Shape, shape_of
from drayman.api.struct import ApiStruct, Json
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
)

PREFIX: Final = "pod-security.kubernetes.io/"
"""Of the labels of namespaces that choose levels, and of the annotations of audit events."""
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Begins the annotation that names the AppArmor profile of a container."""
LATEST: Final = "latest"
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_BAD_VERSION: Final = 'must be "latest" or "v1.x"'


class Level(IntEnum):
    """A policy level. A greater one permits less."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2

    @property
    def word(self) -> str:
        return self.name.lower()


_LEVELS: Final = {level.word: level for level in Level}
_BAD_LEVEL: Final = f"must be one of {', '.join(_LEVELS)}"


class LevelVersion(NamedTuple):
    """A level as some minor version of Kubernetes defines it; None for the newest."""

    level: Level = Level.PRIVILEGED
    minor: int | None = None

    def __str__(self) -> str:
        version = LATEST if self.minor is None else f"v1.{self.minor}"
        return f"{self.level.word}:{version}"


class Policy(NamedTuple):
    """The levels of a namespace: what is refused, what is noted in the audit log, and what the client is warned of."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def is_privileged(self) -> bool:
        """Whether no mode of it forbids anything."""
        return all(mode.level is Level.PRIVILEGED for mode in self)


_MODES: Final = Policy._fields


def policy_of(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace with these labels, and what is wrong with them.

    Like in Kubernetes, a level to enforce that makes no sense is taken as the strictest one, and the other two modes then forbid nothing.
    Where only the level to enforce is named, the client is warned by it too, so that templates of pods are covered.
    """
    errors: list[FieldError] = []
    modes = {
        mode: _mode_of(labels, mode, default, errors)
        for mode, default in zip(_MODES, defaults, strict=True)
    }
    enforce, warn = modes["enforce"], modes["warn"]
    is_named = labels.get(f"{PREFIX}enforce") in _LEVELS
    if is_named and f"{PREFIX}warn" not in labels and enforce.level > warn.level:
        keeps_version = f"{PREFIX}warn-version" in labels
        modes["warn"] = LevelVersion(enforce.level, warn.minor if keeps_version else enforce.minor)
    return Policy(**modes), errors


def _mode_of(
    labels: Mapping[str, str], mode: str, default: LevelVersion, errors: list[FieldError]
) -> LevelVersion:
    level, minor = default
    if (word := labels.get(f"{PREFIX}{mode}")) is not None:
        level = _LEVELS.get(word, Level.RESTRICTED if mode == "enforce" else Level.PRIVILEGED)
        if word not in _LEVELS:
            errors.append(invalid(_label_path(mode), word, _BAD_LEVEL))
    if (text := labels.get(f"{PREFIX}{mode}-version")) is not None:
        minor, is_version = _minor_of(text)
        if not is_version:
            errors.append(invalid(_label_path(f"{mode}-version"), text, _BAD_VERSION))
    return LevelVersion(level, minor)


def _label_path(name: str) -> str:
    return f"metadata.labels[{PREFIX}{name}]"


def _minor_of(text: str) -> tuple[int | None, bool]:
    """The minor version that a text names, None for the newest, and whether it names one."""
    if text == LATEST:
        return None, True
    match = _VERSION.fullmatch(text)
    return (int(match[1]), True) if match else (None, False)


# The configuration of a cluster.


class PodSecuritySettings(Struct, frozen=True):
    """The policy of namespaces without labels, and what no policy applies to."""

    defaults: Policy = Policy()
    users: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()


GROUP: Final = "pod-security.admission.config.k8s.io"
KIND: Final = "PodSecurityConfiguration"
_CONFIGURATION_VERSIONS: Final = tuple(f"{GROUP}/{v}" for v in ("v1", "v1beta1", "v1alpha1"))
_ADMISSION: Final = "AdmissionConfiguration"
_ADMISSION_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_PLUGIN: Final = "PodSecurity"


class _Defaults(ApiStruct):
    enforce: str = ""
    enforce_version: str = field(name="enforce-version", default="")
    audit: str = ""
    audit_version: str = field(name="audit-version", default="")
    warn: str = ""
    warn_version: str = field(name="warn-version", default="")


class _Exemptions(ApiStruct):
    usernames: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    runtime_classes: tuple[str, ...] = ()


class _Configuration(ApiStruct):
    api_version: str = ""
    kind: str = ""
    defaults: _Defaults = _Defaults()
    exemptions: _Exemptions = _Exemptions()


def settings_of(document: Json) -> tuple[PodSecuritySettings, list[FieldError]]:
    """What a PodSecurityConfiguration says, on its own or in an AdmissionConfiguration, and what is wrong with it. Raises DecodeError."""
    if isinstance(document, dict) and document.get("kind") == _ADMISSION:
        return _plugin_settings(document)
    return _settings_of(document, "")


def _plugin_settings(document: Json) -> tuple[PodSecuritySettings, list[FieldError]]:
    errors = []
    if document.get("apiVersion") not in _ADMISSION_VERSIONS:
        version = document.get("apiVersion")
        errors.append(not_supported("apiVersion", version, _ADMISSION_VERSIONS))
    settings = PodSecuritySettings()
    plugins = document.get("plugins") or []
    if not isinstance(plugins, list) or not all(isinstance(each, dict) for each in plugins):
        raise DecodeError("plugins", "expected an array of objects")
    for index, plugin in enumerate(plugins):
        path = f"plugins[{index}]"
        if plugin.get("name") != _PLUGIN:
            errors.append(not_supported(f"{path}.name", plugin.get("name"), [_PLUGIN]))
        elif plugin.get("configuration") is None:
            detail = "the configuration must be part of this file"
            errors.append(invalid(f"{path}.configuration", plugin.get("path"), detail))
        else:
            place = f"{path}.configuration"
            try:
                settings, found = _settings_of(plugin["configuration"], f"{place}.")
            except DecodeError as error:
                raise error.under(place) from error
            errors += found
    return settings, errors


def _settings_of(document: Json, prefix: str) -> tuple[PodSecuritySettings, list[FieldError]]:
    given = codec.convert(_Configuration, document)
    _refuse_unknown(shape_of(_Configuration), document, "")
    errors: list[FieldError] = []
    if given.api_version not in _CONFIGURATION_VERSIONS:
        path = f"{prefix}apiVersion"
        errors.append(not_supported(path, given.api_version, _CONFIGURATION_VERSIONS))
    if given.kind != KIND:
        errors.append(not_supported(f"{prefix}kind", given.kind, [KIND]))
    modes = {}
    for mode in _MODES:
        word = getattr(given.defaults, mode) or Level.PRIVILEGED.word
        text = getattr(given.defaults, f"{mode}_version") or LATEST
        minor, is_version = _minor_of(text)
        path = f"{prefix}defaults.{mode}"
        if word not in _LEVELS:
            errors.append(invalid(path, word, _BAD_LEVEL))
        if not is_version:
            errors.append(invalid(f"{path}-version", text, _BAD_VERSION))
        modes[mode] = LevelVersion(_LEVELS.get(word, Level.RESTRICTED), minor)
    exempt = given.exemptions
    path = f"{prefix}exemptions"
    errors += _each(f"{path}.namespaces", exempt.namespaces, dns_label_problems)
    errors += _each(f"{path}.runtimeClasses", exempt.runtime_classes, dns_subdomain_problems)
    errors += _each(f"{path}.usernames", exempt.usernames, _user_problems)
    settings = PodSecuritySettings(
        Policy(**modes),
        frozenset(exempt.usernames),
        frozenset(exempt.runtime_classes),
        frozenset(exempt.namespaces),
    )
    return settings, errors


def _refuse_unknown(shape: Shape, value: Json, path: str) -> None:
    """Raises DecodeError for a field that does not exist."""
    if not isinstance(shape, Record) or value is None:
        return
    for name, member in value.items():
        place = f"{path}.{name}" if path else name
        if name not in shape.fields:
            raise DecodeError(place, "unknown field")
        _refuse_unknown(shape.fields[name], member, place)


def _user_problems(name: str) -> tuple[str, ...]:
    return () if name else ("username must not be empty",)


def _each(
    path: str, values: tuple[str, ...], problems: Callable[[str], Iterable[str]]
) -> Iterator[FieldError]:
    for index, value in enumerate(values):
        yield from invalid_each(f"{path}[{index}]", value, problems(value))
        if value in values[:index]:
            yield duplicate(f"{path}[{index}]", value)


# What a pod violates.


class Violation(NamedTuple):
    """A check that a pod does not pass, in general and for this pod."""

    reason: str
    detail: str


class Violations(NamedTuple):
    """All checks of a level that a pod does not pass; none if the level permits the pod."""

    found: tuple[Violation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def reasons(self) -> str:
        """What pods of the same fault have in common."""
        return ", ".join(each.reason for each in self.found)

    @property
    def details(self) -> str:
        """The same with the containers, volumes and values of this pod."""
        return ", ".join(f"{each.reason} ({each.detail})" for each in self.found)


Annotations = Mapping[str, str]
Spec = Mapping[str, Json]
PodCheck = Callable[[Annotations, Spec], Violation | None]


def violations(policy: LevelVersion, annotations: Annotations, spec: Spec) -> Violations:
    """What a pod, or a template of pods, violates of a level."""
    if policy.level is Level.PRIVILEGED:
        return Violations()
    newest = _NEWEST if policy.minor is None else min(policy.minor, _NEWEST)
    checks = _checks_of(policy.level, newest)
    results = (check(annotations, spec) for check in checks)
    return Violations(tuple(each for each in results if each is not None))


def is_significant(new: Mapping[str, Json], old: Mapping[str, Json]) -> bool:
    """Whether an update of a pod changes anything that a policy judges. Other updates are permitted even where the pod is not."""
    after, before = _annotations_of(new), _annotations_of(old)
    if after.get(_SECCOMP_OF_POD) != before.get(_SECCOMP_OF_POD):
        return True
    spec, was = new.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        containers, known = spec.get(name) or [], was.get(name) or []
        if len(containers) != len(known) or any(
            _container_changes(container, other, after, before)
            for container, other in zip(containers, known, strict=True)
        ):
            return True
    earlier = {each.get("name"): each for each in was.get("ephemeralContainers") or []}
    return any(
        each.get("name") not in earlier
        or _container_changes(each, earlier[each.get("name")], after, before)
        for each in spec.get("ephemeralContainers") or []
    )


def _container_changes(new: Spec, old: Spec, annotations: Annotations, before: Annotations) -> bool:
    key = f"{_SECCOMP_OF_CONTAINER}{new.get('name', '')}"
    return new.get("image") != old.get("image") or annotations.get(key) != before.get(key)


def _annotations_of(pod: Mapping[str, Json]) -> Annotations:
    found: Annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return found


# What the checks share.

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def _containers(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Every container with its name."""
    for name in _CONTAINERS:
        for container in spec.get(name) or ():
            yield container.get("name", ""), container


def _contexts(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """The security context of every container, empty where it has none."""
    for name, container in _containers(spec):
        yield name, container.get("securityContext") or {}


def _of_pod(spec: Spec) -> Spec:
    context: Spec = spec.get("securityContext") or {}
    return context


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _with_value(key: str, value: str) -> str:
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _named(noun: str, names: list[str]) -> str:
    """As in `container "a"` and `containers "a", "b"`."""
    return f"{_plural(noun, len(names))} {_quoted(names)}"


def _setters(by_pod: bool, containers: list[str]) -> str:
    """As in `pod and container "a"`; empty if neither sets anything."""
    parts = ["pod"] if by_pod else []
    if containers:
        parts.append(_named("container", containers))
    return " and ".join(parts)


def _is_on_windows(spec: Spec) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _has_user_namespace(spec: Spec) -> bool:
    return spec.get("hostUsers") is False


def _except_on_windows(check: PodCheck) -> PodCheck:
    """The same check for pods that do not run on Windows, where what it is about does not exist."""
    return lambda annotations, spec: None if _is_on_windows(spec) else check(annotations, spec)


def _except_in_user_namespaces(check: PodCheck) -> PodCheck:
    """The same check for pods whose root is also root of the node."""
    return lambda annotations, spec: None if _has_user_namespace(spec) else check(annotations, spec)


# The checks of the level `baseline`.

_PROFILES: Final = ("RuntimeDefault", "Localhost")


def _app_armor(annotations: Annotations, spec: Spec) -> Violation | None:
    values: set[str] = set()

    def is_bad(context: Spec) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in _PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    by_pod = is_bad(_of_pod(spec))
    setters = _setters(by_pod, [name for name, context in _contexts(spec) if is_bad(context)])
    noted = sorted(
        _with_value(key, value)
        for key, value in annotations.items()
        if key.startswith(APP_ARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if noted:
        setters = " and ".join(filter(None, (setters, _plural("annotation", len(noted)))))
    if not setters:
        return None
    shown = [*sorted(values), *noted]
    reason = _plural("forbidden AppArmor profile", len(shown))
    return Violation(reason, f"{setters} must not set AppArmor profile type to {_quoted(shown)}")


_DEFAULT_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)


def _added(context: Spec) -> list[str]:
    added: list[str] = (context.get("capabilities") or {}).get("add") or []
    return added


def _capabilities(_: Annotations, spec: Spec) -> Violation | None:
    names, found = [], set()
    for name, context in _contexts(spec):
        if bad := set(_added(context)) - _DEFAULT_CAPABILITIES:
            names.append(name)
            found |= bad
    return Violation("non-default capabilities", _adding(names, found)) if names else None


def _adding(names: list[str], found: set[str]) -> str:
    containers = _named("container", names)
    return f"{containers} must not include {_quoted(sorted(found))} in securityContext.capabilities.add"


def _host_namespaces(_: Annotations, spec: Spec) -> Violation | None:
    names = ("hostNetwork", "hostPID", "hostIPC")
    found = ", ".join(f"{name}=true" for name in names if spec.get(name))
    return Violation("host namespaces", found) if found else None


def _host_paths(_: Annotations, spec: Spec) -> Violation | None:
    volumes = spec.get("volumes") or ()
    names = [each.get("name", "") for each in volumes if each.get("hostPath") is not None]
    return Violation("hostPath volumes", _named("volume", names)) if names else None


def _host_ports(_: Annotations, spec: Spec) -> Violation | None:
    names, found = [], set()
    for name, container in _containers(spec):
        ports = {
            str(each["hostPort"]) for each in container.get("ports") or () if each.get("hostPort")
        }
        if ports:
            names.append(name)
            found |= ports
    if not names:
        return None
    return Violation(
        "hostPort", _using(names, _plural("hostPort", len(found)), ", ".join(sorted(found)))
    )


def _using(names: list[str], what: str, values: str) -> str:
    uses = "uses" if len(names) == 1 else "use"
    return f"{_named('container', names)} {uses} {what} {values}"


def _probe_hosts(_: Annotations, spec: Spec) -> Violation | None:
    names, found = set(), set()
    for name, container in _containers(spec):
        lifecycle = container.get("lifecycle") or {}
        handlers = (
            *(container.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness", "startup")),
            *(lifecycle.get(moment) or {} for moment in ("postStart", "preStop")),
        )
        hosts = {
            host
            for handler in handlers
            for means in ("httpGet", "tcpSocket")
            if (host := (handler.get(means) or {}).get("host"))
        }
        if hosts:
            names.add(name)
            found |= hosts
    if not names:
        return None
    reason = "probe or lifecycle host"
    detail = _using(sorted(names), _plural(reason, len(found)), _quoted(sorted(found)))
    return Violation(reason, detail)


def _privileged(_: Annotations, spec: Spec) -> Violation | None:
    names = [name for name, context in _contexts(spec) if context.get("privileged")]
    if not names:
        return None
    containers = _named("container", names)
    return Violation("privileged", f"{containers} must not set securityContext.privileged=true")


def _proc_mount(_: Annotations, spec: Spec) -> Violation | None:
    found = {
        name: mount
        for name, context in _contexts(spec)
        if (mount := context.get("procMount")) not in (None, "Default")
    }
    if not found:
        return None
    containers, values = _named("container", list(found)), _quoted(sorted(set(found.values())))
    detail = f"{containers} must not set securityContext.procMount to {values}"
    return Violation("procMount", detail)


_SE_LINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})


def _se_linux(types: frozenset[str]) -> PodCheck:
    """Whether custom SELinux options are set, other than these types."""

    def check(_: Annotations, spec: Spec) -> Violation | None:
        bad_types: set[str] = set()
        bad_members: set[str] = set()

        def is_bad(context: Spec) -> bool:
            options = context.get("seLinuxOptions") or {}
            members = {name for name in ("user", "role") if options.get(name)}
            bad_members.update(members)
            kind = options.get("type") or ""
            if kind not in types:
                bad_types.add(kind)
            return bool(members) or kind not in types

        by_pod = is_bad(_of_pod(spec))
        setters = _setters(by_pod, [name for name, context in _contexts(spec) if is_bad(context)])
        if not setters:
            return None
        found = [_named("type", sorted(bad_types))] if bad_types else []
        found += [f"{name} may not be set" for name in ("user", "role") if name in bad_members]
        detail = f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(found)}"
        return Violation("seLinuxOptions", detail)

    return check


_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP: Final = "seccompProfile"


def _seccomp_annotations(annotations: Annotations, spec: Spec) -> Violation | None:
    keys = {_SECCOMP_OF_POD, *(f"{_SECCOMP_OF_CONTAINER}{name}" for name, _ in _containers(spec))}
    found = sorted(
        _with_value(key, value)
        for key in keys
        if (value := annotations.get(key)) is not None
        and value not in ("runtime/default", "docker/default")
        and not value.startswith("localhost/")
    )
    if not found:
        return None
    detail = f"forbidden {_plural('annotation', len(found))} {', '.join(found)}"
    return Violation(_SECCOMP, detail)


class _Seccomp(NamedTuple):
    """What a pod says about the system calls of its containers."""

    is_set: bool
    """Whether the pod as a whole has a permitted profile."""
    forbidden: Violation | None
    without: list[str]
    """Containers without a profile of their own."""


def _seccomp_of(spec: Spec) -> _Seccomp:
    values: set[str] = set()
    without: list[str] = []

    def is_bad(profile: Json) -> bool:
        if profile is None or profile.get("type") in _PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    of_pod = _of_pod(spec).get(_SECCOMP)
    by_pod, names = is_bad(of_pod), []
    for name, context in _contexts(spec):
        profile = context.get(_SECCOMP)
        if profile is None:
            without.append(name)
        elif is_bad(profile):
            names.append(name)
    violation = None
    if setters := _setters(by_pod, names):
        field_name = f"securityContext.{_SECCOMP}.type"
        detail = f"{setters} must not set {field_name} to {_quoted(sorted(values))}"
        violation = Violation(_SECCOMP, detail)
    return _Seccomp(of_pod is not None and not by_pod, violation, without)


def _seccomp(_: Annotations, spec: Spec) -> Violation | None:
    return _seccomp_of(spec).forbidden


_SYSCTLS_1_0: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_1_27: Final = _SYSCTLS_1_0 | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_1_29: Final = _SYSCTLS_1_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_1_32: Final = _SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _sysctls(safe: frozenset[str]) -> PodCheck:
    def check(_: Annotations, spec: Spec) -> Violation | None:
        names = [each.get("name", "") for each in _of_pod(spec).get("sysctls") or ()]
        found = ", ".join(name for name in names if name not in safe)
        return Violation("forbidden sysctls", found) if found else None

    return check


def _host_process(_: Annotations, spec: Spec) -> Violation | None:
    def is_bad(context: Spec) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    names = [name for name, context in _contexts(spec) if is_bad(context)]
    setters = _setters(is_bad(_of_pod(spec)), names)
    if not setters:
        return None
    what = "securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", f"{setters} must not set {what}")


# The checks that the level `restricted` adds.


def _escalation(_: Annotations, spec: Spec) -> Violation | None:
    what = "allowPrivilegeEscalation"
    names = [name for name, context in _contexts(spec) if context.get(what) is not False]
    if not names:
        return None
    detail = f"{_named('container', names)} must set securityContext.{what}=false"
    return Violation(f"{what} != false", detail)


def _all_dropped(_: Annotations, spec: Spec) -> Violation | None:
    undropped, adding, found = [], [], set()
    for name, context in _contexts(spec):
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            undropped.append(name)
        if bad := set(_added(context)) - {"NET_BIND_SERVICE"}:
            adding.append(name)
            found |= bad
    details = []
    if undropped:
        containers = _named("container", undropped)
        details.append(f'{containers} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(_adding(adding, found))
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_PERMITTED_VOLUMES: Final = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
    *("persistentVolumeClaim", "projected", "secret"),
)
_RESTRICTED_VOLUMES: Final = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi"),
    *("glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile"),
    *("vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "storageos"),
)


def _volume_types(_: Annotations, spec: Spec) -> Violation | None:
    names, found = [], set()
    for volume in spec.get("volumes") or ():
        if any(volume.get(kind) is not None for kind in _PERMITTED_VOLUMES):
            continue
        names.append(volume.get("name", ""))
        kinds = (kind for kind in _RESTRICTED_VOLUMES if volume.get(kind) is not None)
        found.add(next(kinds, "unknown"))
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    types = _named("restricted volume type", sorted(found))
    return Violation("restricted volume types", f"{_named('volume', names)} {uses} {types}")


def _non_root(_: Annotations, spec: Spec) -> Violation | None:
    reason, what = "runAsNonRoot != true", "securityContext.runAsNonRoot"
    of_pod = _of_pod(spec).get("runAsNonRoot")
    given = {name: context.get("runAsNonRoot") for name, context in _contexts(spec)}
    setters = _setters(of_pod is False, [name for name, value in given.items() if value is False])
    if setters:
        return Violation(reason, f"{setters} must not set {what}=false")
    missing = [name for name, value in given.items() if value is None]
    if not missing or of_pod:
        return None
    return Violation(reason, f"pod or {_named('container', missing)} must set {what}=true")


def _user(_: Annotations, spec: Spec) -> Violation | None:
    names = [name for name, context in _contexts(spec) if context.get("runAsUser") == 0]
    setters = _setters(_of_pod(spec).get("runAsUser") == 0, names)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_set(_: Annotations, spec: Spec) -> Violation | None:
    found = _seccomp_of(spec)
    if found.forbidden is not None or found.is_set or not found.without:
        return found.forbidden
    containers = _named("container", found.without)
    choices = '"RuntimeDefault" or "Localhost"'
    detail = f"pod or {containers} must set securityContext.{_SECCOMP}.type to {choices}"
    return Violation(_SECCOMP, detail)


# Which revision of which check applies.


class _Check(NamedTuple):
    """A rule with its revisions, the oldest first. A rule of `restricted` may stand for one of `baseline` that it includes."""

    name: str
    level: Level
    revisions: tuple[tuple[int, PodCheck], ...]
    replaces: str = ""

    def at(self, minor: int) -> PodCheck | None:
        """The revision of a version of Kubernetes; None if the rule did not exist yet."""
        return next((check for since, check in reversed(self.revisions) if since <= minor), None)


_B, _R = Level.BASELINE, Level.RESTRICTED
_CHECKS: Final = (
    _Check("appArmorProfile", _B, ((0, _app_armor),)),
    _Check("capabilities_baseline", _B, ((0, _capabilities),)),
    _Check("hostNamespaces", _B, ((0, _host_namespaces),)),
    _Check("hostPathVolumes", _B, ((0, _host_paths),)),
    _Check("hostPorts", _B, ((0, _host_ports),)),
    _Check("hostProbesAndHostLifecycle", _B, ((34, _probe_hosts),)),
    _Check("privileged", _B, ((0, _privileged),)),
    _Check("procMount", _B, ((0, _proc_mount), (35, _except_in_user_namespaces(_proc_mount)))),
    _Check(
        "seLinuxOptions",
        _B,
        (
            (0, _se_linux(_SE_LINUX_TYPES)),
            (31, _se_linux(_SE_LINUX_TYPES | {"container_engine_t"})),
        ),
    ),
    _Check("seccompProfile_baseline", _B, ((0, _seccomp_annotations), (19, _seccomp))),
    _Check(
        "sysctls",
        _B,
        (
            (0, _sysctls(_SYSCTLS_1_0)),
            (27, _sysctls(_SYSCTLS_1_27)),
            (29, _sysctls(_SYSCTLS_1_29)),
            (32, _sysctls(_SYSCTLS_1_32)),
        ),
    ),
    _Check("windowsHostProcess", _B, ((0, _host_process),)),
    _Check(
        "allowPrivilegeEscalation",
        _R,
        ((8, _escalation), (25, _except_on_windows(_escalation))),
    ),
    _Check(
        "capabilities_restricted",
        _R,
        ((22, _all_dropped), (25, _except_on_windows(_all_dropped))),
        replaces="capabilities_baseline",
    ),
    _Check("procMount_restricted", _R, ((35, _proc_mount),), replaces="procMount"),
    _Check("restrictedVolumes", _R, ((0, _volume_types),), replaces="hostPathVolumes"),
    _Check("runAsNonRoot", _R, ((0, _non_root), (35, _except_in_user_namespaces(_non_root)))),
    _Check("runAsUser", _R, ((23, _user), (35, _except_in_user_namespaces(_user)))),
    _Check(
        "seccompProfile_restricted",
        _R,
        ((19, _seccomp_set), (25, _except_on_windows(_seccomp_set))),
        replaces="seccompProfile_baseline",
    ),
)
"""In the order in which violations are listed: by level, then by name."""
_NEWEST: Final = max(since for check in _CHECKS for since, _ in check.revisions)


@lru_cache(maxsize=128)
def _checks_of(level: Level, minor: int) -> tuple[PodCheck, ...]:
    """The checks of a level as they are in a version."""
    applying = [each for each in _CHECKS if each.level <= level and each.at(minor) is not None]
    replaced = {each.replaces for each in applying}
    found = (each.at(minor) for each in applying if each.name not in replaced)
    return tuple(check for check in found if check is not None)
