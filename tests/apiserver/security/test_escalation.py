"""Roles and bindings: no user gives away, or takes, more than they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from security.realm import (
    APPLY,
    MERGE,
    RBAC,
    RBAC_PATH,
    TEAM_RBAC,
    Reply,
    binding,
    realm,
    role,
    rule,
)

WRITE = "create update patch delete"
WRITES_ROLES = rule("roles", WRITE, RBAC)
WRITES_BINDINGS = rule("rolebindings", WRITE, RBAC)
WRITES_CLUSTER_ROLES = rule("clusterroles", WRITE, RBAC)
WRITES_CLUSTER_BINDINGS = rule("clusterrolebindings", WRITE, RBAC)
READS_PODS = rule("pods", "get list")
READS_SECRETS = rule("secrets", "get")
EVERYTHING = (rule("*", "*", "*"), {"nonResourceURLs": ["*"], "verbs": ["*"]})
SELECTORS = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}

ROLES, BINDINGS = f"{TEAM_RBAC}/roles", f"{TEAM_RBAC}/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC_PATH}/clusterroles", f"{RBAC_PATH}/clusterrolebindings"


def ungranted(user: str, *permissions: str) -> str:
    """The end of Kubernetes' refusal."""
    who = f'user "{user}" (groups=["system:authenticated"])'
    return f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(
        permissions
    )


async def granted(rules: tuple[Mapping[str, Any], ...], path: str, body: dict[str, Any]) -> Reply:
    """What a user with some rules, everywhere, is answered to a write of a role or a binding."""
    async with realm() as here:
        await here.let("eve", *rules, everywhere=True)
        return await here.by("eve", "POST", path, body)


ALLOWED: dict[str, tuple[tuple[Mapping[str, Any], ...], str, dict[str, Any]]] = {
    "a role with permissions its writer has": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods", "get"))),
    "a role of two rules that one covers": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods", "get"), rule("pods", "list"))),
    "a role that two rules cover together": (
        (WRITES_ROLES, READS_PODS, READS_SECRETS), ROLES, role("r", rule("pods secrets", "get"))),
    "a role by a user with all verbs": (
        (WRITES_ROLES, rule("pods", "*")), ROLES, role("r", rule("pods", "*"))),
    "a role by a user who may escalate": (
        (WRITES_ROLES, rule("roles", "escalate", RBAC)), ROLES, role("r", *EVERYTHING[:1])),
    "a role without rules": ((WRITES_ROLES,), ROLES, role("r")),
    "names of a resource one has all of": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods", "get", names="a"))),
    "a subresource of anything": (
        (WRITES_ROLES, rule("*/scale", "get", "apps")), ROLES,
        role("r", rule("deployments/scale", "get", "apps"))),
    "a cluster role with paths below one's own": (
        (WRITES_CLUSTER_ROLES, {"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]}),
        CLUSTER_ROLES,
        role("r", {"nonResourceURLs": ["/metrics/a"], "verbs": ["get"]}, kind="ClusterRole")),
    "an aggregated role by a user with all rights": (
        EVERYTHING, CLUSTER_ROLES, role("r", kind="ClusterRole", aggregationRule=SELECTORS)),
    "an aggregated role by a user who may escalate": (
        (WRITES_CLUSTER_ROLES, rule("clusterroles", "escalate", RBAC)), CLUSTER_ROLES,
        role("r", kind="ClusterRole", aggregationRule=SELECTORS)),
    "a binding by a user who may bind that role": (
        (WRITES_BINDINGS, rule("clusterroles", "bind", RBAC, names="cluster-admin")), BINDINGS,
        binding("b", "eve", "ClusterRole", "cluster-admin")),
    "a binding by a user with all rights": (
        EVERYTHING, CLUSTER_BINDINGS,
        binding("b", "eve", "ClusterRole", "cluster-admin", kind="ClusterRoleBinding")),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
async def test_what_a_user_has_can_be_given(name: str) -> None:
    """Who has every permission in a role, or the right to go beyond, may write or bind it."""
    reply = await granted(*ALLOWED[name])
    assert reply.status == 201, reply


REFUSED: dict[str, tuple[tuple[Mapping[str, Any], ...], str, dict[str, Any], str]] = {
    "a role with a verb its writer lacks": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods", "get delete watch")),
        ungranted("eve", '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}')),
    "a role with a resource its writer lacks": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods secrets", "get")),
        ungranted("eve", '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')),
    "a role with a group its writer lacks": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods", "get", "metrics.k8s.io")),
        ungranted("eve", '{APIGroups:["metrics.k8s.io"], Resources:["pods"], Verbs:["get"]}')),
    "all names, by a user with some": (
        (WRITES_ROLES, rule("pods", "get", names="a")), ROLES, role("r", rule("pods", "get")),
        ungranted("eve", '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}')),
    "another name, by a user with one": (
        (WRITES_ROLES, rule("pods", "get", names="a")), ROLES,
        role("r", rule("pods", "get", names="a b")),
        ungranted("eve",
                  '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}')),
    "all verbs, by a user with every verb by name": (
        (WRITES_ROLES, rule("pods", "get list watch create update patch delete deletecollection")),
        ROLES, role("r", rule("pods", "*")),
        ungranted("eve", '{APIGroups:[""], Resources:["pods"], Verbs:["*"]}')),
    "a subresource, by a user with its parent": (
        (WRITES_ROLES, READS_PODS), ROLES, role("r", rule("pods/log", "get")),
        ungranted("eve", '{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}')),
    "a path its writer lacks": (
        (WRITES_CLUSTER_ROLES, READS_PODS), CLUSTER_ROLES,
        role("r", {"nonResourceURLs": ["/logs"], "verbs": ["get"]}, kind="ClusterRole"),
        ungranted("eve", '{NonResourceURLs:["/logs"], Verbs:["get"]}')),
    "escalation of one role by a user who may escalate another": (
        (WRITES_ROLES, rule("roles", "escalate", RBAC, names="other")), ROLES,
        role("r", READS_SECRETS),
        ungranted("eve", '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')),
    "an aggregated role by a user without all rights": (
        (WRITES_CLUSTER_ROLES, READS_PODS), CLUSTER_ROLES,
        role("r", kind="ClusterRole", aggregationRule=SELECTORS),
        "must have cluster-admin privileges to use the aggregationRule"),
    "a binding to a role with more": (
        (WRITES_BINDINGS, READS_PODS), BINDINGS,
        binding("b", "eve", "ClusterRole", "cluster-admin"),
        ungranted("eve", '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
                  '{NonResourceURLs:["*"], Verbs:["*"]}')),
    "a cluster-wide binding by a user who may only create those": (
        (WRITES_CLUSTER_BINDINGS,), CLUSTER_BINDINGS,
        binding("b", "eve", "ClusterRole", "cluster-admin", kind="ClusterRoleBinding"),
        ungranted("eve", '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
                  '{NonResourceURLs:["*"], Verbs:["*"]}')),
    "a binding by a user who may bind another role": (
        (WRITES_BINDINGS, rule("clusterroles", "bind", RBAC, names="view")), BINDINGS,
        binding("b", "eve", "ClusterRole", "cluster-admin"),
        ungranted("eve", '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
                  '{NonResourceURLs:["*"], Verbs:["*"]}')),
    "more permissions than are compared": (
        (WRITES_ROLES,), ROLES,
        role("r", rule(" ".join(f"r{n}" for n in range(101)), " ".join(f"v{n}" for n in range(100)))),
        'user "eve" (groups=["system:authenticated"]) is attempting to grant more than 10000 RBAC '
        "permissions at once"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_what_a_user_lacks_cannot_be_given(name: str) -> None:
    """403, which lists the permissions, in the words of Kubernetes."""
    rules, path, body, want = REFUSED[name]
    reply = await granted(rules, path, body)
    plural = path.rpartition("/")[2]
    about = f'{plural}.{RBAC} "{body["metadata"]["name"]}" is forbidden: '
    assert (reply.status, reply.message) == (403, about + want)


async def test_a_missing_role_can_be_bound_by_users_who_may_bind_it_only() -> None:
    """Nobody knows what it will grant once it exists."""
    async with realm() as here:
        await here.let("eve", WRITES_BINDINGS, *EVERYTHING[:1])
        await here.let("bob", WRITES_BINDINGS)
        body = binding("b", "eve", "Role", "later")
        assert (await here.by("eve", "POST", BINDINGS, body)).status == 201
        refused = await here.by("bob", "POST", BINDINGS, {**body, "metadata": {"name": "c"}})
        assert (refused.status, refused.message) == (404, f'roles.{RBAC} "later" not found')


async def test_the_administrator_of_a_namespace_cannot_become_one_of_the_cluster() -> None:
    """The shipped role `admin` can be given on, `cluster-admin` cannot be taken."""
    async with realm() as here:
        await here.make(BINDINGS, binding("a", "ann", "ClusterRole", "admin"))
        climb = binding("b", "ann", "ClusterRole", "cluster-admin")
        assert (await here.by("ann", "POST", BINDINGS, climb)).status == 403
        share = binding("c", "bob", "ClusterRole", "admin")
        assert (await here.by("ann", "POST", BINDINGS, share)).status == 201


@pytest.mark.parametrize("way", ["update", "merge patch", "apply", "apply that creates"])
async def test_no_way_of_writing_a_role_goes_around_the_check(way: str) -> None:
    """Update, patch and apply are judged by what the role becomes."""
    more = role("r", rule("pods", "get"), READS_SECRETS)
    async with realm() as here:
        await here.let("eve", WRITES_ROLES, READS_PODS)
        if way != "apply that creates":
            await here.make(ROLES, role("r", rule("pods", "get")))
        match way:
            case "update":
                reply = await here.by("eve", "PUT", f"{ROLES}/r", more)
            case "merge patch":
                reply = await here.by(
                    "eve", "PATCH", f"{ROLES}/r", {"rules": more["rules"]}, kind=MERGE
                )
            case _:
                reply = await here.by(
                    "eve", "PATCH", f"{ROLES}/r", more, kind=APPLY, fieldManager="m", force="true"
                )
        assert reply.status == 403
        assert reply.message.endswith('{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')


async def test_changes_of_a_role_one_could_not_grant_are_refused() -> None:
    """Even if they only add a label, or take rules away but leave others."""
    async with realm() as here:
        await here.let("eve", WRITES_ROLES, WRITES_BINDINGS, READS_PODS)
        await here.make(ROLES, role("r", READS_SECRETS, rule("pods", "get")))
        await here.make(BINDINGS, binding("b", "bob", "Role", "r"))
        labels = {"metadata": {"labels": {"a": "b"}}}
        for path in (f"{ROLES}/r", f"{BINDINGS}/b"):
            assert (await here.by("eve", "PATCH", path, labels, kind=MERGE)).status == 403
        less = {"rules": [READS_SECRETS]}
        assert (await here.by("eve", "PATCH", f"{ROLES}/r", less, kind=MERGE)).status == 403
        fewer = {"rules": [rule("pods", "get")]}
        assert (await here.by("eve", "PATCH", f"{ROLES}/r", fewer, kind=MERGE)).status == 200
        assert (await here.by("eve", "DELETE", f"{BINDINGS}/b")).status == 200


async def test_owners_and_finalizers_can_be_changed_without_the_permissions() -> None:
    """That is how garbage is collected."""
    async with realm() as here:
        await here.let("gc", WRITES_ROLES, WRITES_BINDINGS)
        await here.make(ROLES, role("r", READS_SECRETS))
        await here.make(BINDINGS, binding("b", "bob", "ClusterRole", "cluster-admin"))
        change = {"metadata": {"finalizers": ["example.com/wait"]}}
        for path in (f"{ROLES}/r", f"{BINDINGS}/b"):
            assert (await here.by("gc", "PATCH", path, change, kind=MERGE)).status == 200


async def test_an_aggregated_role_cannot_be_made_plain_without_all_rights() -> None:
    """What it gathers could then no longer be narrowed."""
    async with realm() as here:
        await here.let("eve", WRITES_CLUSTER_ROLES, everywhere=True)
        await here.make(CLUSTER_ROLES, role("r", kind="ClusterRole", aggregationRule=SELECTORS))
        change = {"aggregationRule": None}
        reply = await here.by("eve", "PATCH", f"{CLUSTER_ROLES}/r", change, kind=MERGE)
        assert reply.status == 403
        assert reply.message.endswith("privileges to use the aggregationRule")


async def test_a_dry_run_is_judged_too() -> None:
    """It would otherwise say that the write is possible."""
    async with realm() as here:
        await here.let("eve", WRITES_ROLES)
        body = role("r", READS_SECRETS)
        assert (await here.by("eve", "POST", ROLES, body, dryRun="All")).status == 403


async def test_masters_write_what_they_like() -> None:
    """The check does not concern the administrator."""
    async with realm() as here:
        await here.make(CLUSTER_ROLES, role("r", *EVERYTHING, kind="ClusterRole"))


async def test_permissions_in_one_namespace_do_not_count_in_another() -> None:
    """Nor everywhere."""
    async with realm() as here:
        await here.make("/api/v1/namespaces", {"metadata": {"name": "other"}})
        await here.let("eve", READS_SECRETS)
        await here.make(CLUSTER_ROLES, role("writer", WRITES_ROLES, kind="ClusterRole"))
        writer = binding("w", "eve", "ClusterRole", "writer", kind="ClusterRoleBinding")
        await here.make(CLUSTER_BINDINGS, writer)
        body = role("r", READS_SECRETS)
        assert (await here.by("eve", "POST", ROLES, body)).status == 201
        other = f"{RBAC_PATH}/namespaces/other/roles"
        assert (await here.by("eve", "POST", other, body)).status == 403
