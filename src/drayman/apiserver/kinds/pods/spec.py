"""The spec of a pod as a whole, in a pod or in a template."""

from __future__ import annotations

from typing import Final

from drayman.api.alignment import ALIGN
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.validation import FieldError
from drayman.api.validation.alignment import check_pod_annotation
from drayman.api.validation.field_errors import forbidden, invalid, not_supported, required
from drayman.api.validation.metadata import check_annotations, check_labels
from drayman.api.validation.names import dns_label, dns_subdomain, label_key
from drayman.api.validation.pod import MIRROR_ANNOTATION, validate_pod
from drayman.apiserver.kinds.checks import MAX_INT32, one_of
from drayman.apiserver.kinds.pods.containers import check_containers
from drayman.apiserver.kinds.pods.network import check_host_network, check_names
from drayman.apiserver.kinds.pods.pod_level import check_pod_level
from drayman.apiserver.kinds.pods.resources import container_resources
from drayman.apiserver.kinds.pods.scheduling import (
    check_affinity,
    check_gates,
    check_spreading,
    check_tolerations,
)
from drayman.apiserver.kinds.pods.security import check_pod_security
from drayman.apiserver.kinds.pods.spending import check_spending
from drayman.apiserver.kinds.pods.volumes import check_volumes
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.recurring import Recurring, text_of
from drayman.apiserver.served.strategy import Object

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
SYSTEMS: Final = ("linux", "windows")
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_LABELS: Final = ("hostname", "subdomain")
_SUBDOMAINS: Final = (
    "serviceAccountName",
    "nodeName",
    "priorityClassName",
    "runtimeClassName",
)

_EPHEMERAL: Final = b'"ephemeral"'
"""Occurs in the text of specs with volumes made for the pod, whose names derive from its own."""
_sound: Final[Recurring[bool]] = Recurring()
"""Specs, by their text, that are valid."""

_SCHEDULING: Final = (
    ("affinity", check_affinity),
    ("schedulingGates", check_gates),
    ("topologySpreadConstraints", check_spreading),
    ("tolerations", check_tolerations),
)


def check_new_pod(pod: Object) -> list[FieldError]:
    """The errors found by `check_pod`, cached for specs that are valid whatever the pod's name."""
    spec, metadata = map_at(pod, "spec"), map_at(pod, "metadata")
    annotations = metadata.get("annotations") or {}
    text = text_of(spec)
    if (
        text is None
        or _EPHEMERAL in text
        or not metadata.get("name")
        or MIRROR_ANNOTATION in annotations
    ):
        return [*check_pod(pod)]
    if _sound.find(text):
        return [*_annotations(metadata, spec)]
    errors = [*check_pod(pod)]
    if not errors:
        _sound.keep(text, True)
    return errors


def check_pod(pod: Object) -> Errors:
    """A pod without its metadata: the spec, and the rules for pods that do not apply to templates."""
    spec = map_at(pod, "spec")
    metadata = map_at(pod, "metadata")
    if metadata.get("annotations"):
        yield from _annotations(metadata, spec)
    yield from check_pod_spec(spec, "spec", metadata, is_pod=True)


def _annotations(metadata: Object, spec: Object) -> Errors:
    """Annotations with a defined meaning."""
    annotations, path = map_at(metadata, "annotations"), "metadata.annotations"
    if MIRROR_ANNOTATION in annotations and not text_at(spec, "nodeName"):
        # A mirror pod represents a static pod of some node, so it must name the node.
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"{path}[{MIRROR_ANNOTATION}]", annotations[MIRROR_ANNOTATION], detail)
    if DELETION_COST in annotations and not _is_cost(annotations[DELETION_COST]):
        detail = "must be a 32bit integer"
        yield invalid(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], detail)


def check_alignment(pod: Object) -> Errors:
    """What a new pod states about the places of its devices."""
    annotations = map_at(pod, "metadata", "annotations")
    if ALIGN in annotations:
        entries = claim_entries(map_at(pod, "spec"))
        yield from check_pod_annotation(annotations, "metadata.annotations", entries)


def claim_entries(spec: Object) -> list[str]:
    """The names that containers and annotations of a pod have for its claims."""
    return [text_at(entry, "name") for entry in items_at(spec, "resourceClaims")]


def _is_cost(text: str) -> bool:
    """Whether a text is a 32-bit number in canonical form."""
    try:
        number = int(text)
    except ValueError:
        return False
    return str(number) == text and -MAX_INT32 - 1 <= number <= MAX_INT32


def check_pod_spec(
    spec: Object, path: str, metadata: Json = None, *, is_pod: bool = False
) -> Errors:
    """What pods and templates have in common."""
    volumes: dict[str, Object] = {}
    if spec.get("volumes"):
        volumes, errors = check_volumes(spec, metadata if is_pod else None, path)
        yield from errors
    yield from _claims(spec, path, metadata)
    yield from check_containers(spec, volumes, path, is_pod=is_pod)
    if spec.get("resources"):
        yield from check_pod_level(spec, path)
    if spec.get("hostNetwork"):
        yield from check_host_network(spec, path, is_pod=is_pod)
    yield from one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", RESTART_POLICIES)
    yield from one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", DNS_POLICIES)
    if spec.get("nodeSelector"):
        yield from check_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    yield from check_pod_security(spec, path)
    yield from check_names(spec, path)
    for member, check in _SCHEDULING:
        if spec.get(member):
            yield from check(spec, path)
    yield from _names(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, detail)
    if (policy := spec.get("preemptionPolicy")) is not None:
        yield from one_of(policy, f"{path}.preemptionPolicy", PREEMPTION_POLICIES)
    if spec.get("overhead"):
        yield from container_resources({"limits": spec["overhead"]}, f"{path}.overhead")
    if spec.get("os") is not None:
        yield from _system(text_at(spec, "os", "name"), f"{path}.os")


def _system(name: str, path: str) -> Errors:
    if not name:
        yield required(f"{path}.name")
    elif name not in SYSTEMS:
        yield not_supported(path, name, SYSTEMS)


def _names(spec: Object, path: str) -> Errors:
    for name in _LABELS:
        if value := text_at(spec, name):
            yield from dns_label(value, f"{path}.{name}")
    for name in _SUBDOMAINS:
        if value := text_at(spec, name):
            yield from dns_subdomain(value, f"{path}.{name}")
    for where, gate in each_at(spec, path, "readinessGates"):
        condition = text_at(gate, "conditionType")
        yield from label_key(condition, f"{where}.conditionType")


def _claims(spec: Object, path: str, metadata: Json) -> Errors:
    """Claims for devices and the references to them in containers."""
    if not (spec.get("resourceClaims") or spec.get("resources") or _refers_to_claims(spec)):
        return
    pod = convert(Pod, {"metadata": metadata or {}, "spec": spec})
    for error in validate_pod(pod):
        yield _moved(error, path)


def _refers_to_claims(spec: Object) -> bool:
    return any(
        items_at(container, "resources", "claims")
        for name in ("containers", "initContainers")
        for container in items_at(spec, name)
    )


def _moved(error: FieldError, path: str) -> FieldError:
    """An error of a pod's spec, moved to the path of that spec."""
    if not error.path.startswith("spec."):
        return error
    place = f"{path}{error.path.removeprefix('spec')}"
    return FieldError(error.kind, place, error.value, error.detail)


def check_template(template: Json, path: str) -> Errors:
    """A pod template: labels and annotations, and the spec of future pods."""
    metadata = map_at(template, "metadata")
    yield from check_labels(map_at(metadata, "labels"), f"{path}.labels")
    spec, annotations = map_at(template, "spec"), map_at(metadata, "annotations")
    yield from check_annotations(annotations, f"{path}.annotations")
    if ALIGN in annotations:
        place = f"{path}.metadata.annotations"
        yield from check_pod_annotation(annotations, place, claim_entries(spec))
    yield from check_spending(metadata, f"{path}.metadata")
    yield from check_pod_spec(spec, f"{path}.spec", metadata)
    if items_at(template, "spec", "ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{path}.spec.ephemeralContainers", detail)
