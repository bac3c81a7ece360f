"""What the server fills in for pods and pod templates.

A template gets less than a pod: later additions to the API are only defaulted when a pod is created, so that old templates
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.kinds.pods.pod_level import default_pod_level
from drayman.apiserver.kinds.reading import at, items_at, map_at, member, set_default
from drayman.apiserver.protocol.errors import bad_request
from drayman.apiserver.served.strategy import Object
from drayman.placement.schedulers import DEFAULT_SCHEDULER

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
MOST_CLAIMS: Final = 256
"""Each is made, allocated and reserved together with the pod."""
MOST_CONTAINERS: Final = 1_000
"""In one list. Each gets so many fields filled in, checked and recorded as owned that fifty thousand, which fit into a small body,
would block all other requests for seconds."""
MOST_TERMS: Final = 256
"""In one list of terms about other pods. While the pod runs, each of them counts for every pod that is to be placed."""
_MOST: Final[dict[tuple[str, ...], int]] = {
    **{(name,): MOST_CONTAINERS for name in CONTAINER_LISTS},
    ("resourceClaims",): MOST_CLAIMS,
    ("topologySpreadConstraints",): MOST_TERMS,
    **{
        ("affinity", name, f"{strength}DuringSchedulingIgnoredDuringExecution"): MOST_TERMS
        for name in ("podAffinity", "podAntiAffinity")
        for strength in ("required", "preferred")
    },
}
DEFAULT_MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600
DEFAULT_ACCOUNT: Final = "default"
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_SPEC_DEFAULTS: Final = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", DEFAULT_SCHEDULER),
)
_CONTAINER_DEFAULTS: Final = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
)
_PROBE_DEFAULTS: Final = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)
_HOOKS: Final = ("postStart", "preStop")


def default_pod(pod: Object) -> None:
    """Fill in a pod."""
    spec = member(pod, "spec")
    default_pod_spec(spec)
    if not spec.get("serviceAccountName") and _wants_token(spec):
        spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT_ACCOUNT
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("enableServiceLinks", True)
    for name in ("containers", "initContainers"):
        for container in _objects(spec, name):
            _default_requests(container)
            if spec.get("hostNetwork"):
                _default_host_ports(container)
    if isinstance(spec.get("resources"), dict):
        default_pod_level(spec)


def _wants_token(spec: Object) -> bool:
    """Whether a volume is to have a token, which is one of an account. In Kubernetes, admission names the account of every pod."""
    return any(
        source.get("serviceAccountToken") is not None
        for volume in _objects(spec, "volumes")
        for source in _objects(volume, "projected", "sources")
    )


def default_template(template: Json) -> None:
    """Fill in the pod template of a workload."""
    if isinstance(template, dict):
        default_pod_spec(member(template, "spec"))


def default_pod_spec(spec: Object) -> None:
    """Fill in what pods and templates have in common. Raises StatusError 400 where there are too many containers for that."""
    _bound_lists(spec)
    for name, value in _SPEC_DEFAULTS:
        set_default(spec, name, value)
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    # The field's second name is older; both are always shown.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in CONTAINER_LISTS:
        for container in _objects(spec, name):
            _default_container(container)
    for volume in _objects(spec, "volumes"):
        _default_volume(volume)


def _bound_lists(spec: Object) -> None:
    for path, most in _MOST.items():
        count = len(items_at(spec, *path))
        if count > most:
            name = ".".join(path)
            raise bad_request(f"{name} has {count} items, and no pod has more than {most}")


def _objects(value: Json, *path: str) -> Iterator[Object]:
    for item in items_at(value, *path):
        if isinstance(item, dict):
            yield item


def _default_container(container: Object) -> None:
    for name, value in _CONTAINER_DEFAULTS:
        set_default(container, name, value)
    set_default(container, "imagePullPolicy", pull_policy(container.get("image") or ""))
    for port in _objects(container, "ports"):
        set_default(port, "protocol", "TCP")
    for variable in _objects(container, "env"):
        _default_field_ref(at(variable, "valueFrom", "fieldRef"))
    for name in PROBES:
        _default_probe(container.get(name))
    for hook in _HOOKS:
        _default_http_get(at(container, "lifecycle", hook, "httpGet"))


def pull_policy(image: str) -> str:
    """Images that may change under the same name are always pulled. A name without a tag means `latest`."""
    name, at_sign, _ = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    if not image or (at_sign and not colon):
        return "IfNotPresent"
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _default_probe(probe: Json) -> None:
    if not isinstance(probe, dict):
        return
    for name, value in _PROBE_DEFAULTS:
        set_default(probe, name, value)
    _default_http_get(probe.get("httpGet"))
    if isinstance(grpc := probe.get("grpc"), dict):
        grpc.setdefault("service", "")


def _default_http_get(action: Json) -> None:
    if isinstance(action, dict):
        set_default(action, "path", "/")
        set_default(action, "scheme", "HTTP")


def _default_field_ref(reference: Json) -> None:
    if isinstance(reference, dict):
        set_default(reference, "apiVersion", "v1")


def _default_volume(volume: Object) -> None:
    if not any(value is not None for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(source := volume.get(name), dict):
            source.setdefault("defaultMode", DEFAULT_MODE)
    for item in _objects(volume, "downwardAPI", "items"):
        _default_field_ref(item.get("fieldRef"))
    for source in _objects(volume, "projected", "sources"):
        _default_projection(source)
    if isinstance(claim := at(volume, "ephemeral", "volumeClaimTemplate", "spec"), dict):
        claim.setdefault("volumeMode", "Filesystem")
    if isinstance(image := volume.get("image"), dict):
        set_default(image, "pullPolicy", pull_policy(image.get("reference") or ""))
    default_source(volume)


def _default_projection(source: Object) -> None:
    if isinstance(token := source.get("serviceAccountToken"), dict):
        token.setdefault("expirationSeconds", TOKEN_SECONDS)
    for item in _objects(source, "downwardAPI", "items"):
        _default_field_ref(item.get("fieldRef"))


def default_source(volume: Object) -> None:
    """Sources that volumes of pods and volumes of the cluster have in common."""
    if isinstance(path := volume.get("hostPath"), dict):
        path.setdefault("type", "")
    if isinstance(iscsi := volume.get("iscsi"), dict):
        set_default(iscsi, "iscsiInterface", "default")
    if isinstance(rbd := volume.get("rbd"), dict):
        set_default(rbd, "pool", "rbd")
        set_default(rbd, "user", "admin")
        set_default(rbd, "keyring", "/etc/ceph/keyring")
    if isinstance(disk := volume.get("azureDisk"), dict):
        disk.setdefault("cachingMode", "ReadWrite")
        disk.setdefault("kind", "Shared")
        disk.setdefault("fsType", "ext4")
        disk.setdefault("readOnly", False)
    if isinstance(scale_io := volume.get("scaleIO"), dict):
        set_default(scale_io, "storageMode", "ThinProvisioned")
        set_default(scale_io, "fsType", "xfs")


def _default_requests(container: Object) -> None:
    limits = map_at(container, "resources", "limits")
    if limits:
        requests = member(member(container, "resources"), "requests")
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _default_host_ports(container: Object) -> None:
    for port in _objects(container, "ports"):
        if not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def default_pod_status(pod: Object) -> None:
    """Keep the single address and the list of addresses consistent; the single one wins."""
    status = pod.get("status")
    if not isinstance(status, dict):
        return
    first = at(next(iter(items_at(status, "podIPs")), None), "ip")
    single = status.get("podIP")
    if single and first != single:
        status["podIPs"] = [{"ip": single}]
    elif first and not single:
        status["podIP"] = first
