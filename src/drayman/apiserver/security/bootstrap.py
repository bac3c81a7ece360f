"""The roles and bindings that exist from the start, with the names known from Kubernetes, and the role of users who ask questions."""

from __future__ import annotations

from typing import Final

from drayman.api.node_identity import NODES
from drayman.apiserver.kinds.access_control import GROUP
from drayman.apiserver.protocol.access import (
    AUTHENTICATED,
    EVERYTHING,
    MASTERS,
    UNAUTHENTICATED,
)
from drayman.apiserver.security.aggregation import aggregated_rules
from drayman.apiserver.security.permissions import missing_permissions
from drayman.apiserver.served.strategy import Object
from drayman.cluster.rights import READER, READING
from drayman.workloads.certificates.signers import SIGNERS

_CERTIFICATES: Final = "certificates.k8s.io"
_OWN_CLIENT: Final = "selfnodeclient"
_OWN_SERVER: Final = "selfnodeserver"
_API_VERSION: Final = f"{GROUP}/v1"
_AGGREGATED_TO: Final = f"{GROUP}/aggregate-to-"
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "deletecollection", "patch", "update"]
_PUBLIC_PATHS: Final = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY_PATHS: Final = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/openapi",
    "/openapi/*",
    *_PUBLIC_PATHS,
]

_WORKLOADS: Final = (
    (
        "",
        ["configmaps", "events", "persistentvolumeclaims", "pods", "replicationcontrollers",
         "replicationcontrollers/scale", "serviceaccounts", "services"],
    ),
    ("apps", ["daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
              "statefulsets", "statefulsets/scale"]),
    ("autoscaling", ["horizontalpodautoscalers"]),
    ("batch", ["cronjobs", "jobs"]),
    ("policy", ["poddisruptionbudgets"]),
    ("resource.k8s.io", ["resourceclaims", "resourceclaimtemplates"]),
    ("scheduling.k8s.io", ["podgroups", "workloads"]),
)  # fmt: skip


def bootstrap_objects() -> list[Object]:
    """Cluster roles, then the bindings to them. They are created if missing, and completed with each start."""
    return [*_roles(), *_bindings()]


def completed(existing: Object, wanted: Object) -> Object:
    """One of these objects as it should be, if it exists already: with what a newer version adds to it, and with what users added.

    Users who want to narrow it set its annotation `autoupdate` to false.
    """
    metadata = existing["metadata"]
    if (metadata.get("annotations") or {}).get(_AUTOUPDATE) != "true":
        return existing
    made = {**existing, "metadata": {**metadata}}
    for name in ("labels", "annotations"):
        made["metadata"][name] = {**(metadata.get(name) or {}), **wanted["metadata"][name]}
    if "aggregationRule" in wanted:
        made["aggregationRule"] = wanted["aggregationRule"]
    for name in ("rules", "subjects"):
        if name in wanted:
            found = list(existing.get(name) or ())
            made[name] = found + [one for one in wanted[name] if not _has(found, one, name)]
    return made


def _has(found: list[Object], wanted: Object, name: str) -> bool:
    return not missing_permissions(found, [wanted]) if name == "rules" else wanted in found


def _role(name: str, *rules: Object, aggregated_to: str = "") -> Object:
    labels = {_AGGREGATED_TO + aggregated_to: "true"} if aggregated_to else {}
    metadata = {
        "name": name,
        "labels": {**_LABELS, **labels},
        "annotations": {_AUTOUPDATE: "true"},
    }
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": list(rules),
    }


def _aggregated(name: str, sources: list[Object], *, aggregated_to: str = "") -> Object:
    """A role with the rules of all roles that are labelled for it, those of other installations included."""
    selector = {"matchLabels": {_AGGREGATED_TO + name: "true"}}
    role = _role(name, aggregated_to=aggregated_to)
    role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    role["rules"] = aggregated_rules(role, sources)
    return role


def _binding(role: str, *groups: str) -> Object:
    metadata = {
        "name": role,
        "labels": dict(_LABELS),
        "annotations": {_AUTOUPDATE: "true"},
    }
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups],
    }


def _resources(verbs: list[str], *groups: tuple[str, list[str]]) -> list[Object]:
    return [{"apiGroups": [g], "resources": list(r), "verbs": list(verbs)} for g, r in groups]


def _paths(paths: list[str]) -> Object:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


def _metrics_reader() -> Object:
    """As metrics-server installs it: whoever may see pods may see what they use."""
    rules = _resources(_READ, ("metrics.k8s.io", ["nodes", "pods"]))
    role = _role("system:aggregated-metrics-reader", *rules)
    for name in ("view", "edit", "admin"):
        role["metadata"]["labels"][_AGGREGATED_TO + name] = "true"
    return role


def _roles() -> list[Object]:
    reviews = ("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"])
    view = _resources(_READ, *_WORKLOADS)
    logs = _resources(_READ, ("", ["namespaces", "pods/log", "pods/status"]))
    edit = _resources([*_READ, *_WRITE], *_WORKLOADS)
    secrets = _resources([*_READ, *_WRITE], ("", ["secrets"]))
    connecting = ["pods/attach", "pods/exec", "pods/portforward"]
    pods = _resources(["create"], ("", [*connecting, "pods/eviction", "serviceaccounts/token"]))
    rbac = _resources([*_READ, *_WRITE], (GROUP, ["rolebindings", "roles"]))
    local = _resources(["create"], ("authorization.k8s.io", ["localsubjectaccessreviews"]))
    parts = [
        _role("system:aggregate-to-admin", *rbac, *local, aggregated_to="admin"),
        _role("system:aggregate-to-edit", *edit, *secrets, *pods, aggregated_to="edit"),
        _role("system:aggregate-to-view", *view, *logs, aggregated_to="view"),
    ]
    parts.append(_metrics_reader())
    parts.append(_aggregated("view", parts, aggregated_to="edit"))
    parts.append(_aggregated("edit", parts, aggregated_to="admin"))
    return [
        *parts,
        _aggregated("admin", parts),
        _role("cluster-admin", *EVERYTHING),
        _role("system:discovery", _paths(_DISCOVERY_PATHS)),
        _role("system:public-info-viewer", _paths(_PUBLIC_PATHS)),
        _role(
            "system:basic-user",
            *_resources(["create"], reviews, ("authentication.k8s.io", ["selfsubjectreviews"])),
        ),
        _role(
            "system:auth-delegator",
            *_resources(
                ["create"],
                ("authentication.k8s.io", ["tokenreviews"]),
                ("authorization.k8s.io", ["subjectaccessreviews"]),
            ),
        ),
        *_certificate_roles(),
        _role(READER, *(right.rule for right in READING)),
    ]


def _certificate_roles() -> list[Object]:
    """Whose requests are approved without anybody's doing, and who may approve those for a signer."""
    requests = "certificatesigningrequests"
    asking = [
        _role(
            f"system:{_CERTIFICATES}:{requests}:{part}",
            *_resources(["create"], (_CERTIFICATES, [f"{requests}/{part}"])),
        )
        for part in (_OWN_CLIENT, _OWN_SERVER)
    ]
    return asking + [
        _role(
            f"system:{_CERTIFICATES}:{signer.partition('/')[2]}-approver",
            {
                "apiGroups": [_CERTIFICATES],
                "resources": ["signers"],
                "resourceNames": [signer],
                "verbs": ["approve"],
            },
        )
        for signer in SIGNERS
    ]


def _bindings() -> list[Object]:
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:basic-user", AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
        *(
            _binding(f"system:{_CERTIFICATES}:certificatesigningrequests:{part}", NODES)
            for part in (_OWN_CLIENT, _OWN_SERVER)
        ),
    ]
