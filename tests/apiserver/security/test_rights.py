"""Every verb that a request amounts to needs its right."""

from __future__ import annotations

import pytest
from security.realm import (
    APPLY,
    MERGE,
    RBAC,
    RBAC_PATH,
    TEAM,
    TEAM_RBAC,
    Realm,
    Reply,
    realm,
    rule,
)

from drayman.apiserver.instance.first_objects import create_first_objects

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "m"},
    "spec": {"holderIdentity": "x"},
}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/team/leases"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
MAPS = f"{TEAM}/configmaps"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def test_an_apply_that_creates_needs_the_right_to_create() -> None:
    """The right to patch suffices only for what exists."""
    async with realm() as here:
        await here.let("eve", rule("configmaps", "patch get"))
        path = f"{MAPS}/m"
        reply = await here.by("eve", "PATCH", path, MAP, kind=APPLY, fieldManager="e")
        assert (reply.status, reply.message) == (
            403,
            'configmaps "m" is forbidden: User "eve" cannot create resource "configmaps" in API group "" '
            'in the namespace "team"',
        )
        await here.make(MAPS, {**MAP, "data": {}})
        reply = await here.by("eve", "PATCH", path, MAP, kind=APPLY, fieldManager="e")
        assert (reply.status, reply.body["data"]) == (200, {"a": "b"})


async def test_an_update_that_creates_needs_the_right_to_create() -> None:
    """As for kinds that clients may create by PUT."""
    async with realm() as here:
        await here.let("eve", rule("leases", "update", "coordination.k8s.io"))
        await here.let("ann", rule("leases", "update create", "coordination.k8s.io"))
        reply = await here.by("eve", "PUT", f"{LEASES}/m", LEASE)
        assert reply.status == 403
        assert 'cannot create resource "leases"' in reply.message
        made = await here.by("ann", "PUT", f"{LEASES}/m", LEASE)
        assert made.status == 201
        assert (await here.by("eve", "PUT", f"{LEASES}/m", made.body)).status == 200


async def test_an_invalid_object_is_reported_before_the_missing_right_to_create_it() -> None:
    """As the real server does: the right is looked for when the object is complete."""
    async with realm() as here:
        await here.let("eve", rule("configmaps", "patch"))
        bad = {**MAP, "data": {"a/b": "c"}}
        reply = await here.by("eve", "PATCH", f"{MAPS}/m", bad, kind=APPLY, fieldManager="e")
        assert reply.status == 422


async def reading_one(here: Realm) -> None:
    """Make two maps, and a user who may see one of them."""
    await here.make(MAPS, MAP)
    await here.make(MAPS, {**MAP, "metadata": {"name": "n"}})
    await here.let("eve", rule("configmaps", "get list watch", names="m"))


@pytest.mark.parametrize(
    ("selector", "status"),
    [
        ("metadata.name=m", 200),
        ("metadata.name==m", 200),
        ("metadata.namespace=team,metadata.name=m", 200),
        ("metadata.name=n", 403),
        ("metadata.name!=n", 403),
        ("metadata.namespace=team", 403),
        ("", 403),
        ("metadata.name=m,zz", 403),
        ("metadata.name=m/n", 403),
    ],
)
async def test_a_list_of_one_name_needs_the_right_to_that_name(selector: str, status: int) -> None:
    """A rule with names allows to list and watch by `metadata.name`, and no other way."""
    async with realm() as here:
        await reading_one(here)
        reply = await here.by("eve", "GET", MAPS, fieldSelector=selector)
        assert reply.status == status
        if status == 200:
            assert [item["metadata"]["name"] for item in reply.body["items"]] == ["m"]


async def test_a_collection_is_deleted_by_the_right_to_delete_collections() -> None:
    """The right to delete is about single objects, and a name in a selector changes nothing."""
    async with realm() as here:
        await here.let("eve", rule("configmaps", "delete"))
        await here.let("ann", rule("configmaps", "deletecollection"))
        await here.let("bob", rule("configmaps", "deletecollection", names="m"))
        await here.make(MAPS, MAP)
        assert (await here.by("eve", "DELETE", MAPS)).status == 403
        named = {"fieldSelector": "metadata.name=m"}
        assert (await here.by("bob", "DELETE", MAPS, **named)).status == 403
        assert (await here.by("ann", "DELETE", MAPS)).status == 200


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
async def test_a_connection_to_a_pod_needs_the_right_to_create(part: str) -> None:
    """The right to create suffices, also when it is opened with GET, as a WebSocket is; the right to get does not."""
    async with realm() as here:
        await here.make(f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
        await here.make(f"{TEAM}/pods", POD)
        await here.let("eve", rule(f"pods/{part}", "get"))
        await here.let("ann", rule(f"pods/{part}", "create"))
        path = f"{TEAM}/pods/p/{part}"
        refused = await here.by("eve", "GET", path)
        assert refused.status == 403
        assert f'cannot create resource "pods/{part}"' in refused.message
        assert (await here.by("ann", "GET", path)).status == 400  # it has no node yet


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
async def test_editors_connect_to_pods(part: str) -> None:
    """A user with the role `edit` in a namespace uses pods there, and one with `view` does not."""
    async with realm() as here:
        await here.make(f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
        await here.make(f"{TEAM}/pods", POD)
        for user, role in (("ann", "edit"), ("eve", "view")):
            binding = {
                "metadata": {"name": user},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
            }
            await here.make(f"{TEAM_RBAC}/rolebindings", binding)
        path = f"{TEAM}/pods/p/{part}"
        assert (await here.by("ann", "GET", path)).status == 400  # it has no node yet
        assert (await here.by("ann", "POST", path)).status == 400
        assert (await here.by("eve", "GET", path)).status == 403


async def test_a_part_of_an_object_is_not_the_object() -> None:
    """The right to a status does not give the spec, nor the other way round."""
    async with realm() as here:
        await here.let("eve", rule("resourceclaims/status", "get patch update", "resource.k8s.io"))
        claims = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": []}}}
        await here.make(claims, claim)
        assert (await here.by("eve", "GET", f"{claims}/c/status")).status == 200
        assert (await here.by("eve", "GET", f"{claims}/c")).status == 403


async def test_aggregated_roles_of_the_start_have_their_rules() -> None:
    """Before anything aggregates them: `admin` includes `edit`, which includes `view`."""
    async with realm() as here:
        rules = {}
        for name in ("view", "edit", "admin"):
            found = await here.send("GET", f"{RBAC_PATH}/clusterroles/{name}")
            rules[name] = [str(one) for one in found.body["rules"]]
            assert found.body["aggregationRule"]
        assert set(rules["view"]) < set(rules["edit"]) < set(rules["admin"])


async def test_a_new_version_completes_the_first_roles() -> None:
    """Rules, labels and subjects that an older version lacked are added; those of users stay; and `autoupdate: false` is respected."""
    async with realm() as here:
        path = f"{RBAC_PATH}/clusterroles"
        old = {"rules": [rule("widgets", "get", "example.com")], "aggregationRule": None}
        for name in ("system:discovery", "view"):
            await here.send("PATCH", f"{path}/{name}", old, {"content-type": MERGE})
        kept = {**old, "metadata": {"annotations": {AUTOUPDATE: "false"}}}
        await here.send("PATCH", f"{path}/system:basic-user", kept, {"content-type": MERGE})
        bound = f"{RBAC_PATH}/clusterrolebindings/system:discovery"
        await here.send("PATCH", bound, {"subjects": []}, {"content-type": MERGE})
        await create_first_objects(here.server.core)
        discovery = (await here.send("GET", f"{path}/system:discovery")).body["rules"]
        assert [sorted(one) for one in discovery] == [
            ["apiGroups", "resources", "verbs"],
            ["nonResourceURLs", "verbs"],
        ]
        assert (await here.send("GET", f"{path}/view")).body["aggregationRule"]
        assert len((await here.send("GET", f"{path}/system:basic-user")).body["rules"]) == 1
        assert (await here.send("GET", bound)).body["subjects"][0]["name"] == "system:authenticated"


async def token(here: Realm, reference: dict[str, str], account: str = "bot") -> Reply:
    spec = {"boundObjectRef": {"apiVersion": "v1", **reference}}
    return await here.send("POST", f"{TEAM}/serviceaccounts/{account}/token", {"spec": spec})


async def test_a_token_is_bound_to_pods_of_its_account_only() -> None:
    """Otherwise the token of one account would speak for the pod of another. It also names the pod's node."""
    async with realm() as here:
        for name in ("bot", "default", "other"):
            await here.make(f"{TEAM}/serviceaccounts", {"metadata": {"name": name}})
        await here.make("/api/v1/nodes", {"metadata": {"name": "n1"}})
        spec = {**POD["spec"], "serviceAccountName": "bot", "nodeName": "n1"}
        await here.make(f"{TEAM}/pods", {**POD, "spec": spec})
        pod = {"kind": "Pod", "name": "p"}
        refused = await token(here, pod, "other")
        assert (refused.status, refused.message) == (
            400,
            'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
        )
        issued = (await token(here, pod)).body["status"]["token"]
        review = {"spec": {"token": issued}}
        reviewed = await here.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        extra = reviewed.body["status"]["user"]["extra"]
        assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
        assert extra["authentication.kubernetes.io/node-name"] == ["n1"]


@pytest.mark.parametrize(
    ("reference", "status", "message"),
    [
        (
            {"kind": "Robot", "name": "r"},
            400,
            "cannot bind token to object of type /v1, Kind=Robot",
        ),
        ({"kind": "Secret", "name": "s"}, 404, 'secrets "s" not found'),
        (
            {"kind": "Node", "name": "n1", "uid": "another"},
            409,
            'Operation cannot be fulfilled on Node "n1": the UID in the bound object reference (another) does not '
            "match the UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
async def test_what_a_token_cannot_be_bound_to(
    reference: dict[str, str], status: int, message: str
) -> None:
    """Kinds that are not known for it, objects that do not exist, and objects other than the one meant."""
    async with realm() as here:
        await here.make(f"{TEAM}/serviceaccounts", {"metadata": {"name": "bot"}})
        await here.make("/api/v1/nodes", {"metadata": {"name": "n1"}})
        reply = await token(here, reference)
        assert (reply.status, reply.message) == (status, message)


async def test_a_token_request_is_for_the_account_of_its_address() -> None:
    """A body that names another one is refused."""
    async with realm() as here:
        await here.make(f"{TEAM}/serviceaccounts", {"metadata": {"name": "bot"}})
        body = {"metadata": {"name": "root"}, "spec": {}}
        reply = await here.send("POST", f"{TEAM}/serviceaccounts/bot/token", body)
        assert reply.status == 422
        assert "must match the service account name if specified" in reply.message
