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


_READY = {"status": {"phase": "Running"}}
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
    Case("it removes its pods", "DELETE", f"{PODS}/here", 200),
    Case("it does not remove those of others", "DELETE", f"{PODS}/there", 403),
    Case("it makes no pods", "POST", PODS, 403, {"metadata": {"name": "new"}}),
    Case("it reads a Secret that one of its pods names", "GET", f"{SECRETS}/here", 200),
    Case("it does not read one of another node", "GET", f"{SECRETS}/there", 403),
    Case("it does not list Secrets", "GET", SECRETS, 403),
    Case("it gets a token for the account of a pod", "POST", f"{ACCOUNTS}/used/token", 201, {}),
    Case("and for no other account", "POST", f"{ACCOUNTS}/unused/token", 403, {}),
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
    Case(
        "it changes its own node",
        "PATCH",
        "/api/v1/nodes/mine",
        200,
        {"metadata": {"labels": {"a": "b"}}},
    ),
    Case(
        "it does not give itself labels that mean trust",
        "PATCH",
        "/api/v1/nodes/mine",
        403,
        {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}},
        "is not allowed to modify labels",
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
    """Two nodes with a pod each; each pod has a Secret and a claim of its own name."""
    for name in ("mine", "other"):
        assert (await here.send("POST", "/api/v1/nodes", {"metadata": {"name": name}})).status < 300
    for name in ("used", "unused"):
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
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "secret": {"secretName": name}}],
            "resourceClaims": [{"name": "d", "resourceClaimName": name}],
        }
        reply = await here.send("POST", PODS, {"metadata": {"name": name}, "spec": pod})
        assert reply.status == 201, reply.message


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
