"""Objects of every kind that is served, with any of their lists and maps as long as wanted.

Kinds, versions and fields come from the table of resources and their schemas. A skeleton is an object of a kind that the server
accepts; a place is a list or map somewhere in it.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from drayman.api.schema import Field, ListOf, MapOf, Message, Scalar, ScalarKind, Type, schema_for
from drayman.apiserver.served.resources import ApiResource

Object = dict[str, Any]
ITEM: Final = "*"
"""In a path: the first item of a list or map."""
NAME: Final = "x"
LABELS: Final = {"app": NAME}
_POD_SPEC: Final[Object] = {"containers": [{"name": "c", "image": "i"}]}
_TEMPLATE: Final[Object] = {"metadata": {"labels": LABELS}, "spec": _POD_SPEC}
_SELECTOR: Final[Object] = {"matchLabels": LABELS}
_ONCE: Final[Object] = {**_TEMPLATE, "spec": {**_POD_SPEC, "restartPolicy": "Never"}}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_STORAGE: Final = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
_DEVICES: Final = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
_OLD_DEVICES: Final = {"requests": [{"name": "r", "deviceClassName": "gpu"}]}
_SLICE: Final = {
    "driver": "gpu.example.com",
    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    "nodeName": "n",
}
_SCALED: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_ACCESS: Final = {"resourceAttributes": {"verb": "get", "resource": "pods"}}


def _signing_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, SHA256())
    return base64.b64encode(request.public_bytes(Encoding.PEM)).decode()


SKELETONS: Final[dict[str, Object]] = {
    "Binding": {"target": {"kind": "Node", "name": "n"}},
    "CertificateSigningRequest": {
        "spec": {
            "request": _signing_request(),
            "signerName": "example.com/s",
            "usages": ["client auth"],
        }
    },
    "ClusterRoleBinding": {"roleRef": _ROLE},
    "ControllerRevision": {"revision": 1, "data": {}},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _ONCE}}}},
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
    "CSIStorageCapacity": {"storageClassName": "standard"},
    "CustomResourceDefinition": {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    },
    "DaemonSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "Deployment": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "example.com/k", "effect": "NoSchedule"}}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    "HorizontalPodAutoscaler": {"spec": {"maxReplicas": 3, "scaleTargetRef": _SCALED}},
    "IPAddress": {
        "metadata": {"name": "10.0.0.1"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}},
    },
    "Job": {"spec": {"template": _ONCE}},
    "LimitRange": {"spec": {"limits": [{"type": "Pod"}]}},
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/p"},
        }
    },
    "PersistentVolumeClaim": {"spec": _STORAGE},
    "Pod": {"spec": _POD_SPEC},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
    "PodGroup": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    "PodTemplate": {"template": _TEMPLATE},
    "PriorityClass": {"value": 7},
    "ReplicaSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "ReplicationController": {"spec": {"selector": LABELS, "template": _TEMPLATE}},
    "ResourceClaim": {"spec": {"devices": _DEVICES}},
    "ResourceClaimTemplate": {"spec": {"spec": {"devices": _DEVICES}}},
    "ResourcePoolStatusRequest": {"spec": {"driver": "gpu.example.com"}},
    "ResourceSlice": {"spec": {**_SLICE, "devices": [{"name": "d"}]}},
    "RoleBinding": {"roleRef": _ROLE},
    "RuntimeClass": {"handler": "h"},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.1.0.0/16"]}},
    "StatefulSet": {"spec": {"serviceName": "s", "selector": _SELECTOR, "template": _TEMPLATE}},
    "StorageClass": {"provisioner": "p.example.com"},
    "SubjectAccessReview": {"spec": {"user": "u", **_ACCESS}},
    "LocalSubjectAccessReview": {"spec": {"user": "u", **_ACCESS}},
    "SelfSubjectAccessReview": {"spec": _ACCESS},
    "SelfSubjectRulesReview": {"spec": {"namespace": "default"}},
    "TokenReview": {"spec": {"token": "t"}},
    "VolumeAttachment": {
        "spec": {
            "attacher": "a.example.com",
            "nodeName": "n",
            "source": {"persistentVolumeName": "v"},
        }
    },
    "VolumeAttributesClass": {"driverName": "d.example.com", "parameters": {"a": "b"}},
    "Workload": {"spec": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": {"basic": {}}}]}},
}
OLDER: Final[dict[tuple[str, str], Object]] = {
    ("ResourceClaim", "resource.k8s.io/v1beta1"): {"spec": {"devices": _OLD_DEVICES}},
    ("ResourceClaimTemplate", "resource.k8s.io/v1beta1"): {
        "spec": {"spec": {"devices": _OLD_DEVICES}}
    },
    ("ResourceSlice", "resource.k8s.io/v1beta1"): {
        "spec": {**_SLICE, "devices": [{"name": "d", "basic": {}}]}
    },
    ("Event", "events.k8s.io/v1"): {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "regarding": {"namespace": "default"},
    },
    ("Event", "v1"): {"involvedObject": {"namespace": "default"}, "reason": "r"},
}
"""Where a version is not written as the newest one."""


def skeleton(resource: ApiResource, version: str) -> Object:
    """An object of a kind that the server accepts."""
    kind = resource.kind_in(version)
    older = OLDER.get((kind.kind, kind.api_version))
    body = copy.deepcopy(older if older is not None else SKELETONS.get(kind.kind, {}))
    metadata = {"name": NAME, **body.pop("metadata", {})}
    if resource.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


@dataclass(frozen=True, slots=True)
class Place:
    """A list or map of a kind."""

    resource: ApiResource
    version: str
    path: tuple[str, ...]
    owner: Message
    field: Field

    def __str__(self) -> str:
        return f"{self.resource.kind_in(self.version).api_version} {self.resource.kind} {'.'.join(self.path)}"

    @property
    def shared(self) -> tuple[str, str, str]:
        """What the same field agrees in where it is used by another kind, or in another version."""
        return self.owner.package.partition("/")[0], self.owner.name, self.field.name


def message_of(resource: ApiResource, version: str) -> Message:
    kind = resource.kind_in(version)
    message = schema_for(kind.group, kind.version, kind.kind)
    assert message is not None, kind
    return message


def places(resource: ApiResource, version: str) -> Iterator[Place]:
    """Every list and map of a kind. A message that contains itself is entered once."""
    root = message_of(resource, version)

    def walk(message: Message, path: tuple[str, ...], above: frozenset[Message]) -> Iterator[Place]:
        for name, field in message.fields.items():
            type_, here = field.type, (*path, name)
            if isinstance(type_, ListOf | MapOf):
                yield Place(resource, version, here, message, field)
            while isinstance(type_, ListOf | MapOf):
                type_, here = _item_type(type_), (*here, ITEM)
            if isinstance(type_, Message) and type_ not in above:
                yield from walk(type_, here, above | {type_})

    return walk(root, (), frozenset({root}))


def _item_type(type_: ListOf | MapOf) -> Type:
    return type_.item if isinstance(type_, ListOf) else type_.value


def together(found: Iterable[Place]) -> Iterator[tuple[Place, ...]]:
    """Places that may be compared with each other: those of one message, and those of a kind that are in no other list."""
    within: dict[tuple[Message, tuple[str, ...]], list[Place]] = {}
    outside: list[Place] = []
    for place in found:
        within.setdefault((place.owner, place.path[:-1]), []).append(place)
        if ITEM not in place.path:
            outside.append(place)
    groups = {tuple(group) for group in (*within.values(), outside) if len(group) > 1}
    return iter(sorted(groups, key=lambda group: [place.path for place in group]))


def grown(group: Sequence[Place], count: int, variant: str) -> Object:
    """An object of a kind whose lists or maps at some places have so many items."""
    obj = skeleton(group[0].resource, group[0].version)
    for place in group:
        fill(obj, place, count, variant)
    return obj


def fill(obj: Object, place: Place, count: int, variant: str) -> None:
    """Make the list or map at a place of an object as long as wanted."""
    at: Any = obj
    type_: Type = message_of(place.resource, place.version)
    for name in place.path[:-1]:
        at, type_ = _entered(at, type_, name)
    at[place.path[-1]] = items(place.field.type, place.field, count, variant)


def _entered(at: Any, type_: Type, name: str) -> tuple[Any, Type]:
    """What is one step further on the way to a place, made where it is missing."""
    if isinstance(type_, Message):
        field = type_.fields[name]
        if at.get(name) is None:
            at[name] = _start(field.type, field)
        return at[name], field.type
    assert isinstance(type_, ListOf | MapOf)
    inner = _item_type(type_)
    if isinstance(at, list):
        if not at:
            at.append(value(inner, None, 0, "distinct"))
        return at[0], inner
    if not at:
        at["k0"] = value(inner, None, 0, "distinct")
    return next(iter(at.values())), inner


def _start(type_: Type, field: Field) -> Any:
    if isinstance(type_, ListOf):
        return [value(type_.item, field, 0, "distinct")]
    if isinstance(type_, MapOf):
        return {"k0": value(type_.value, field, 0, "distinct")}
    return value(type_, field, 0, "distinct")


def items(type_: Type, field: Field, count: int, variant: str) -> Any:
    """A list or map of so many items, made as the variant says."""
    if isinstance(type_, MapOf):
        prefix = "-" if variant == "empty" else "k"
        return {
            f"{prefix}{number}": value(type_.value, field, number, variant)
            for number in range(count)
        }
    assert isinstance(type_, ListOf)
    if variant == "same":
        return [value(type_.item, field, 1, "distinct") for _ in range(count)]
    return [value(type_.item, field, number, variant) for number in range(count)]


_TIME: Final = "2026-01-01T00:00:00Z"
_TEXTS: Final[dict[str, str]] = {
    "apiVersion": "v1", "kind": "Pod", "operator": "Exists", "effect": "NoSchedule", "protocol": "TCP", "status": "True",
    "expression": "true", "topologyKey": "kubernetes.io/hostname", "apiGroup": "rbac.authorization.k8s.io", "fieldPath": "metadata.name",
    "whenUnsatisfiable": "DoNotSchedule", "fieldsType": "FieldsV1", "operation": "Update", "reason": "R", "deviceClassName": "gpu",
    "driver": "gpu.example.com", "allocationMode": "ExactCount", "addressType": "IPv4",
}  # fmt: skip
_NUMBERED: Final[dict[str, str]] = {
    "name": "n{0}", "key": "example.com/k{0}", "uid": "u{0}", "type": "example.com/T{0}", "mountPath": "/m{0}", "path": "p{0}",
    "ip": "10.0.0.{0}", "devicePath": "/d{0}", "image": "i{0}", "finalizers": "example.com/f{0}", "topologyKeys": "example.com/t{0}",
    "addresses": "10.0.1.{0}", "ips": "10.0.2.{0}", "podIPs": "10.0.3.{0}", "hostnames": "h{0}.example.com",
    "schedulingGates": "example.com/g{0}", "domain": "example.com",
}  # fmt: skip


def value(type_: Type, field: Field | None, number: int, variant: str) -> Any:
    """A value of a type. `variant` is one of:

    distinct: with what identifies an item and what it must have; full: with every member that is not a list or map; empty: with nothing.
    """
    if isinstance(type_, Message):
        if variant == "empty":
            return {}
        return {
            name: value(inner.type, inner, number, variant)
            for name, inner in type_.fields.items()
            if _is_given(name, inner, variant) and not _is_within(inner.type, type_)
        }
    if isinstance(type_, ListOf):
        return [] if variant == "empty" else [value(type_.item, field, number, variant)]
    if isinstance(type_, MapOf):
        return (
            {} if variant == "empty" else {f"k{number}": value(type_.value, field, number, variant)}
        )
    return _scalar(type_, "" if field is None else field.name, number, variant)


def _is_given(name: str, field: Field, variant: str) -> bool:
    is_key = name in ("name", "key", "uid", "topologyKey", "type", "status", "operator", "image")
    if is_key and isinstance(field.type, Scalar):
        return True
    return field.required or (variant == "full" and isinstance(field.type, Scalar))


def _is_within(type_: Type, message: Message) -> bool:
    """Whether a message would contain itself without end."""
    while isinstance(type_, ListOf | MapOf):
        type_ = _item_type(type_)
    return type_ is message


def _scalar(type_: Scalar, name: str, number: int, variant: str) -> Any:
    match type_.kind:
        case ScalarKind.STRING:
            if variant == "empty":
                return ""
            known = _TEXTS.get(name)
            return known if known is not None else _NUMBERED.get(name, "v{0}").format(number)
        case ScalarKind.BOOL:
            return True
        case ScalarKind.INT32 | ScalarKind.INT64 | ScalarKind.INT_OR_STRING:
            return number + 1
        case ScalarKind.DOUBLE:
            return number + 0.5
        case ScalarKind.BYTES:
            return "YQ=="
        case ScalarKind.QUANTITY:
            return "1"
        case ScalarKind.TIME:
            return _TIME
        case ScalarKind.MICRO_TIME:
            return "2026-01-01T00:00:00.000000Z"
        case ScalarKind.RAW_EXTENSION | ScalarKind.FIELDS_V1:
            return {"apiVersion": "v1", "kind": "K"} if variant != "empty" else {}
        case ScalarKind.SCHEMA_OR_BOOL:
            return True
        case ScalarKind.SCHEMA_OR_ARRAY:
            return {"type": "string"}
        case ScalarKind.SCHEMA_OR_STRINGS:
            return [f"v{number}"]
        case _:
            return f"v{number}"
