"""Role-based access control."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.apiserver.protocol.access import Attributes, User
from drayman.apiserver.security.bootstrap import bootstrap_objects
from drayman.apiserver.security.rbac import RbacAuthorizer, covers

ALICE = User("alice", groups=("dev", "system:authenticated"))


@dataclass
class Kept:
    """Objects as the authorizer reads them."""

    items: list[dict[str, Any]] = field(default_factory=list)

    def _of(self, resource: str) -> list[dict[str, Any]]:
        return [
            o for o in self.items if f"{o['kind'].lower()}s.rbac.authorization.k8s.io" == resource
        ]

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return next(
            (
                o
                for o in self._of(resource)
                if (o["metadata"].get("namespace", ""), o["metadata"]["name"]) == (namespace, name)
            ),
            None,
        )

    def list(self, resource: str, namespace: str | None = None) -> list[dict[str, Any]]:
        return [
            o
            for o in self._of(resource)
            if namespace is None or o["metadata"].get("namespace", "") == namespace
        ]


def role(kind: str, name: str, *rules: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(
    kind: str, name: str, ref: tuple[str, str], subject: dict[str, str], namespace: str = ""
) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": ref[0], "name": ref[1]},
        "subjects": [subject],
    }


def rule(groups: str, resources: str, verbs: str, names: str = "") -> dict[str, Any]:
    """Words separated by spaces; a dot stands for the core group."""
    made: dict[str, Any] = {
        "apiGroups": ["" if g == "." else g for g in groups.split()],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return {**made, "resourceNames": names.split()} if names else made


PODS = Attributes("get", "", "v1", "pods", "", "team", "p")
COVERED = [
    ("exact", rule(".", "pods", "get"), PODS, True),
    ("any verb", rule(".", "pods", "*"), PODS, True),
    ("any resource", rule(".", "*", "get"), PODS, True),
    ("any group", rule("*", "pods", "get"), PODS, True),
    ("another verb", rule(".", "pods", "list"), PODS, False),
    ("another group", rule("apps", "pods", "get"), PODS, False),
    ("named", rule(".", "pods", "get", "p q"), PODS, True),
    ("another name", rule(".", "pods", "get", "q"), PODS, False),
    (
        "a subresource is not its parent",
        rule(".", "pods", "get"),
        Attributes("get", "", "v1", "pods", "log", "team", "p"),
        False,
    ),
    (
        "a subresource by name",
        rule(".", "pods/log", "get"),
        Attributes("get", "", "v1", "pods", "log", "team", "p"),
        True,
    ),
    (
        "a subresource of anything",
        rule(".", "*/scale", "get"),
        Attributes("get", "", "v1", "pods", "scale", "team", "p"),
        True,
    ),
    (
        "a path",
        {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
        Attributes("get", path="/healthz"),
        True,
    ),
    (
        "paths below one",
        {"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]},
        Attributes("get", path="/metrics/slis"),
        True,
    ),
    ("resources say nothing about paths", rule("*", "*", "*"), Attributes("get", path="/x"), False),
]


@pytest.mark.parametrize(
    ("given", "asked", "want"), [c[1:] for c in COVERED], ids=[c[0] for c in COVERED]
)
def test_what_a_rule_covers(given: dict[str, Any], asked: Attributes, want: bool) -> None:
    """A rule covers a request if verb, group, resource and name all do."""
    assert covers(given, asked) is want


def test_a_role_binding_gives_rights_in_its_namespace_only() -> None:
    """A RoleBinding to a ClusterRole does not reach other namespaces, and says why it allows."""
    kept = Kept(
        [
            role("ClusterRole", "reader", rule(".", "pods", "get list")),
            binding(
                "RoleBinding",
                "rb",
                ("ClusterRole", "reader"),
                {"kind": "Group", "name": "dev"},
                namespace="team",
            ),
        ]
    )
    authorizer = RbacAuthorizer(kept)
    decision = authorizer.authorize(ALICE, PODS)
    assert decision.allowed
    assert decision.reason == (
        'RBAC: allowed by RoleBinding "rb/team" of ClusterRole "reader" to Group "dev"'
    )
    elsewhere = Attributes("get", "", "v1", "pods", "", "other", "p")
    assert not authorizer.authorize(ALICE, elsewhere).allowed
    everywhere = Attributes("list", "", "v1", "pods")
    assert not authorizer.authorize(ALICE, everywhere).allowed


def test_a_service_account_is_a_subject_by_namespace_and_name() -> None:
    """A ServiceAccount subject is the user of that name."""
    kept = Kept(
        [
            role("Role", "reader", rule(".", "pods", "get"), namespace="team"),
            binding(
                "RoleBinding",
                "rb",
                ("Role", "reader"),
                {"kind": "ServiceAccount", "name": "bot", "namespace": "team"},
                namespace="team",
            ),
        ]
    )
    authorizer = RbacAuthorizer(kept)
    assert authorizer.authorize(User("system:serviceaccount:team:bot"), PODS).allowed
    assert not authorizer.authorize(User("system:serviceaccount:other:bot"), PODS).allowed


def test_a_binding_to_a_missing_role_gives_nothing() -> None:
    """A dangling reference allows nothing and breaks nothing."""
    kept = Kept(
        [
            binding(
                "ClusterRoleBinding",
                "b",
                ("ClusterRole", "gone"),
                {"kind": "User", "name": "alice"},
            )
        ]
    )
    assert not RbacAuthorizer(kept).authorize(ALICE, PODS).allowed


BOOTSTRAP = [
    ("masters may everything", User("root", groups=("system:masters",)), PODS, True),
    ("others nothing by themselves", ALICE, PODS, False),
    ("authenticated users may discover", ALICE, Attributes("get", path="/apis/apps/v1"), True),
    (
        "anonymous may see health",
        User("system:anonymous", groups=("system:unauthenticated",)),
        Attributes("get", path="/readyz"),
        True,
    ),
    (
        "anonymous may not discover",
        User("system:anonymous", groups=("system:unauthenticated",)),
        Attributes("get", path="/apis"),
        False,
    ),
    (
        "everybody may ask about themselves",
        ALICE,
        Attributes("create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
        True,
    ),
]


@pytest.mark.parametrize(
    ("user", "asked", "want"), [c[1:] for c in BOOTSTRAP], ids=[c[0] for c in BOOTSTRAP]
)
def test_what_the_first_roles_allow(user: User, asked: Attributes, want: bool) -> None:
    """The roles that are there from the start give Kubernetes' usual rights."""
    assert RbacAuthorizer(Kept(bootstrap_objects())).authorize(user, asked).allowed is want
