"""Role-based access control."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from drayman.apiserver.protocol.access import Attributes, User
from drayman.apiserver.security.bindings import BINDINGS, CLUSTER_BINDINGS, Bindings
from drayman.apiserver.security.bootstrap import bootstrap_objects
from drayman.apiserver.security.rbac import RbacAuthorizer, covers
from drayman.cluster.embedded import Event, EventType, Key, Stored

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


def authorizer_of(kept: Kept) -> RbacAuthorizer:
    return RbacAuthorizer(kept, Bindings(kept))


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
    authorizer = authorizer_of(kept)
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
    authorizer = authorizer_of(kept)
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
    assert not authorizer_of(kept).authorize(ALICE, PODS).allowed


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
    assert authorizer_of(Kept(bootstrap_objects())).authorize(user, asked).allowed is want


def test_bindings_are_followed_as_they_change() -> None:
    """After any changes, the bindings of each user are those that a fresh look at all bindings finds."""
    rng = random.Random(1)
    kept: dict[Key, Stored] = {}
    followed = Bindings(Kept())
    for revision in range(1, 400):
        namespace = rng.choice(("", "team"))
        key = Key(BINDINGS if namespace else CLUSTER_BINDINGS, namespace, f"b{rng.randrange(5)}")
        previous = kept.pop(key, None)
        if previous is not None and rng.random() < 0.4:
            event = Event(EventType.DELETED, previous, previous)
        else:
            stored = Stored(key, revision, msgspec.json.encode(random_binding(rng, key)))
            kept[key] = stored
            kind = EventType.ADDED if previous is None else EventType.MODIFIED
            event = Event(kind, stored, previous)
        followed.applied([event])
        fresh = Bindings(Kept([one.value for one in kept.values()]))
        for user in USERS:
            for where in ("", "team"):
                assert followed.of(user, where) == fresh.of(user, where)


def test_a_decision_looks_at_the_bindings_of_its_user_alone() -> None:
    """However many others there are."""
    others = [
        binding(
            "ClusterRoleBinding", f"b{n}", ("ClusterRole", "r"), {"kind": "User", "name": f"u{n}"}
        )
        for n in range(50)
    ]
    bindings = Bindings(Kept(others))
    assert bindings.of(ALICE, "") == []
    assert [bound.binding for bound in bindings.of(User("u7"), "")] == ["b7"]


USERS = (ALICE, User("bob"), User("system:serviceaccount:team:bot", groups=("dev",)))


def random_binding(rng: random.Random, key: Key) -> dict[str, Any]:
    subjects = [
        {"kind": "User", "name": "alice"},
        {"kind": "User", "name": "bob"},
        {"kind": "Group", "name": "dev"},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "team"},
        {"kind": "ServiceAccount", "name": "bot"},
        {"kind": "User", "name": "system:serviceaccount:team:bot"},
        {"kind": "Thing", "name": "alice"},
    ]
    kind = "RoleBinding" if key.namespace else "ClusterRoleBinding"
    made = binding(kind, key.name, ("ClusterRole", rng.choice("ab")), {}, namespace=key.namespace)
    return {**made, "subjects": rng.choices(subjects, k=rng.randrange(4))}
