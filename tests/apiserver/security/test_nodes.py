"""What the agent of a node may do, and what it may not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.security.realm import MERGE, Realm, realm
from drayman.apiserver.security.tokens import ISSUER, TokenIssuer, new_signing_key

PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MINE = {"impersonate-user": "system:node:mine", "impersonate-group": "system:nodes"}


@dataclass(frozen=True)
class Case:
    says: str
    method: str
    path: str
    status: int
    body: dict[str, Any] | None = None
    message: str = ""


def _slice(node: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example", "nodeName": node, "pool": pool, "devices": [{"name": "d0"}]}
    return {"metadata": {"name": f"s-{node}"}, "spec": spec}


def _lease(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": name}}


def _eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def _labelled(name: str) -> dict[str, Any]:
    return {"metadata": {"labels": {name: "b"}}}


NODE = "/api/v1/nodes/mine"
_TOKEN = {"path": "token", "audience": "vault"}
_READY = {"status": {"phase": "Running"}}
_EXTENDED = {
    "resourceClaimName": "there",
    "requestMappings": [{"containerName": "c", "resourceName": "x.example/d", "requestName": "r"}],
}
_OWNER = {"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "1234"}
_SETTINGS = {"configMap": {"name": "c", "namespace": "kube-system", "kubeletConfigKey": "kubelet"}}
_DEVICE = {"driver": "d.example", "pool": "mine", "device": "d0"}
CASES = [
    Case("it reads pods", "GET", PODS, 200),
    Case("it reports on its pods", "PATCH", f"{PODS}/here/status", 200, _READY),
    Case(
        "it does not report on the pods of others",
        "PATCH",
        f"{PODS}/there/status",
        403,
        _READY,
        "can only modify pods with spec.nodeName set to itself",
    ),
    Case(
        "it does not say which claims were made for its pods: it could read them",
        "PATCH",
        f"{PODS}/here/status",
        403,
        {"status": {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "there"}]}},
        "cannot update resource claim statuses",
    ),
    Case(
        "nor which claim has their extended resources",
        "PATCH",
        f"{PODS}/here/status",
        403,
        {"status": {"extendedResourceClaimStatus": _EXTENDED}},
        "cannot update extended resource claim status",
    ),
    Case(
        "it does not change the labels of its pods",
        "PATCH",
        f"{PODS}/here/status",
        403,
        {"metadata": {"labels": {"a": "b"}}, **_READY},
        "cannot update labels through pod status",
    ),
    Case("it removes its pods", "DELETE", f"{PODS}/here", 200),
    Case("it does not remove those of others", "DELETE", f"{PODS}/there", 403),
    Case("it evicts its pods", "POST", f"{PODS}/here/eviction", 201, _eviction("here")),
    Case("it evicts no others", "POST", f"{PODS}/there/eviction", 403, _eviction("there")),
    Case("it makes no pods", "POST", PODS, 403, {"metadata": {"name": "new"}}),
    Case("it reads a Secret that one of its pods names", "GET", f"{SECRETS}/here", 200),
    Case("it does not read one of another node", "GET", f"{SECRETS}/there", 403),
    Case("it does not list Secrets", "GET", SECRETS, 403),
    Case("it publishes its own devices", "POST", SLICES, 201, _slice("mine")),
    Case(
        "it publishes no devices of others",
        "POST",
        SLICES,
        403,
        _slice("other"),
        "can only modify ResourceSlices with spec.nodeName set to itself",
    ),
    Case("it renews its lease", "POST", LEASES, 201, _lease("mine")),
    Case("it renews no other lease", "POST", LEASES, 403, _lease("other")),
    Case("it may look for its lease", "GET", f"{LEASES}/mine", 404),
    Case("it does not read other leases", "GET", f"{LEASES}/other", 403),
    Case("it does not list leases", "GET", LEASES, 403),
    Case(
        "it has none elsewhere", "GET", LEASES.replace("kube-node-lease", "default") + "/mine", 403
    ),
    Case(
        "nor makes one there",
        "POST",
        LEASES.replace("kube-node-lease", "default"),
        403,
        _lease("mine"),
    ),
    Case("it changes its own node", "PATCH", NODE, 200, _labelled("a")),
    Case(
        "it does not give itself labels that mean trust",
        "PATCH",
        NODE,
        403,
        _labelled("node-restriction.kubernetes.io/a"),
        "is not allowed to modify labels: node-restriction.kubernetes.io/a",
    ),
    Case(
        "nor does it by its status",
        "PATCH",
        f"{NODE}/status",
        403,
        _labelled("node-restriction.kubernetes.io/a"),
        "is not allowed to modify labels",
    ),
    Case(
        "it gives itself no role",
        "PATCH",
        NODE,
        403,
        _labelled("node-role.kubernetes.io/control-plane"),
        "is not allowed to modify labels",
    ),
    Case("it takes away no label that means trust", "PATCH", NODE, 403, _labelled("x.k8s.io/kept")),
    Case("it says where it is", "PATCH", NODE, 200, _labelled("topology.kubernetes.io/zone")),
    Case("it has labels of its own", "PATCH", NODE, 200, _labelled("a.node.kubernetes.io/b")),
    Case("drivers label it, too", "PATCH", NODE, 200, _labelled("nvidia.com/gpu.clique")),
    Case(
        "it does not free itself of taints",
        "PATCH",
        NODE,
        403,
        {"spec": {"taints": None}},
        "is not allowed to modify taints",
    ),
    Case(
        "it does not say where its settings come from",
        "PATCH",
        NODE,
        403,
        {"spec": {"configSource": _SETTINGS}},
        "is not allowed to set configSource",
    ),
    Case("it may close itself to new pods", "PATCH", NODE, 200, {"spec": {"unschedulable": True}}),
    Case(
        "it names no owner, with which it would be deleted",
        "PATCH",
        NODE,
        403,
        {"metadata": {"ownerReferences": [_OWNER]}},
        "is not allowed to modify ownerReferences",
    ),
    Case(
        "it does not change another node",
        "PATCH",
        "/api/v1/nodes/other/status",
        403,
        {"status": {"capacity": {"cpu": "1"}}},
        'is not allowed to modify node "other"',
    ),
    Case("it reads a claim of its pods", "GET", f"{CLAIMS}/here", 200),
    Case("it reads no other claim", "GET", f"{CLAIMS}/there", 403),
    Case(
        "it reports on the devices of such a claim",
        "PATCH",
        f"{CLAIMS}/here/status",
        200,
        {"status": {"devices": [_DEVICE]}},
    ),
    Case(
        "it does not allocate",
        "PATCH",
        f"{CLAIMS}/here/status",
        403,
        {"status": {"allocation": None}},
        "can only modify status.devices of ResourceClaims",
    ),
    Case("it does not change roles", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 403),
]


async def _fill(here: Realm) -> None:
    """Two nodes with a pod each; each pod has a Secret and a claim of its own name. A second pod on `mine` has another account."""
    labels = {"x.k8s.io/kept": "a"}
    for name in ("mine", "other"):
        metadata = {"name": name, "labels": labels}
        assert (await here.send("POST", "/api/v1/nodes", {"metadata": metadata})).status < 300
    for name in ("used", "also-used", "unused"):
        await here.send("POST", ACCOUNTS, {"metadata": {"name": name}})
    for name, node in (("here", "mine"), ("there", "other")):
        await here.send("POST", SECRETS, {"metadata": {"name": name}})
        exactly = {"name": "r", "exactly": {"deviceClassName": "c"}}
        spec: dict[str, Any] = {"devices": {"requests": [exactly]}}
        await here.send("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
        result = {"request": "r", "driver": "d.example", "pool": node, "device": "d0"}
        allocation = {"status": {"allocation": {"devices": {"results": [result]}}}}
        headers = {"content-type": MERGE}
        path = f"{CLAIMS}/{name}/status"
        assert (await here.send("PATCH", path, allocation, headers)).status == 200
        pod = {
            "nodeName": node,
            "serviceAccountName": "used",
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"x.example/d": "1"}}}
            ],
            "volumes": [
                {"name": "v", "secret": {"secretName": name}},
                {"name": "t", "projected": {"sources": [{"serviceAccountToken": _TOKEN}]}},
            ],
            "resourceClaims": [{"name": "d", "resourceClaimName": name}],
        }
        reply = await here.send("POST", PODS, {"metadata": {"name": name}, "spec": pod})
        assert reply.status == 201, reply.message
    bare = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "also-used"}
    await here.make(PODS, {"metadata": {"name": "second"}, "spec": {"nodeName": "mine", **bare}})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
async def test_rights_of_a_node(case: Case) -> None:
    """Each case says what holds."""
    async with realm() as here:
        await _fill(here)
        headers = MINE | ({"content-type": MERGE} if case.method == "PATCH" else {})
        reply = await here.send(case.method, case.path, case.body, headers)
        assert reply.status == case.status, reply.body
        if case.message:
            assert case.message in reply.message


@dataclass(frozen=True)
class TokenCase:
    says: str
    status: int
    pod: str = "here"
    """The pod that the token is to be bound to; none if empty."""
    account: str = "used"
    audiences: tuple[str, ...] = ("vault",)
    has_uid: bool = True
    message: str = ""


TOKENS = [
    TokenCase("it gets a token that is bound to its pod", 201),
    TokenCase("it gets none that is not bound", 403, pod="", message="is not bound to a pod"),
    TokenCase("it gets none without the uid", 403, has_uid=False, message="without a uid"),
    TokenCase("it gets none for a pod elsewhere", 403, pod="there", message="on a different node"),
    TokenCase("it gets none for an account that none of its pods has", 403, account="unused"),
    TokenCase("it gets none for the account of another of its pods", 400, account="also-used"),
    TokenCase("it gets none for audiences that the pod does not have", 403, audiences=("bank",)),
    TokenCase("it gets none for the API server if the pod has none", 403, audiences=()),
    TokenCase("a pod that is gone is not found", 404, pod="gone"),
]


@pytest.mark.parametrize("case", TOKENS, ids=lambda case: case.says)
async def test_tokens_that_a_node_asks_for(case: TokenCase) -> None:
    """Each case says what holds."""
    async with realm() as here:
        await _fill(here)
        spec: dict[str, Any] = {"audiences": list(case.audiences)}
        if case.pod:
            found = (await here.send("GET", f"{PODS}/{case.pod}")).body
            uid = found["metadata"].get("uid", "1234") if case.has_uid else ""
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": case.pod,
                "uid": uid,
            }
        reply = await here.send("POST", f"{ACCOUNTS}/{case.account}/token", {"spec": spec}, MINE)
        assert reply.status == case.status, reply.body
        if case.message:
            assert case.message in reply.message


async def test_a_node_makes_its_own_node() -> None:
    """With the labels of a kubelet and with taints; labels that mean trust are refused then, too."""
    async with realm() as here:
        labels = {"kubernetes.io/hostname": "mine", "kubernetes.io/os": "linux", "a": "b"}
        taints = [{"key": "a", "effect": "NoSchedule"}]
        trusted = labels | {"node-role.kubernetes.io/control-plane": ""}
        for given, status in ((trusted, 403), (labels, 201)):
            node = {"metadata": {"name": "mine", "labels": given}, "spec": {"taints": taints}}
            assert (await here.send("POST", "/api/v1/nodes", node, MINE)).status == status


async def test_settings_that_somebody_else_has_given_a_node() -> None:
    """It is neither made with any nor given others; those that it has, it may keep or leave out."""
    async with realm() as here:
        node: dict[str, Any] = {"metadata": {"name": "mine"}, "spec": {"configSource": _SETTINGS}}
        assert (await here.send("POST", "/api/v1/nodes", node, MINE)).status == 403
        assert (await here.send("POST", "/api/v1/nodes", node)).status == 201
        other = {"configMap": {**_SETTINGS["configMap"], "name": "d"}}
        for source, status in ((_SETTINGS, 200), (other, 403), (None, 200)):
            patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"configSource": source}}
            reply = await here.send("PATCH", NODE, patch, {**MINE, "content-type": MERGE})
            assert reply.status == status, reply.body


def test_a_token_of_a_node_is_nothing_else() -> None:
    """It names its node until it expires, and is no token of a service account."""
    issuer = TokenIssuer(new_signing_key())
    now = datetime.now(UTC)
    token = issuer.issue_to_node("mine", now, timedelta(hours=1))
    assert issuer.read_node(token, (ISSUER,), now) == "mine"
    assert issuer.read(token, (ISSUER,), now) is None
    assert issuer.read_node(token, ("others",), now) is None
    assert issuer.read_node(token, (ISSUER,), now + timedelta(hours=1)) is None
    assert TokenIssuer(new_signing_key()).read_node(token, (ISSUER,), now) is None
