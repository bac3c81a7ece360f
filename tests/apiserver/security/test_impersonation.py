"""Acting as another user: by the right to be that user, or by the narrower rights to be one for certain requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from drayman.apiserver.protocol.access import AccessDecision, Attributes, Grant, User
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.security.impersonation import Impersonated, Impersonation

IDENTITY = "authentication.k8s.io"
AGENT = User("system:serviceaccount:kube-system:agent")
LISTING = Attributes("list", "", "v1", "pods", "", "team")


@dataclass
class Rights:
    """Allows by verb, or all that is not denied, and remembers what was looked for."""

    verbs: frozenset[str] | None = None
    denied: str = ""
    wanted: list[Attributes] = field(default_factory=list)

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        self.wanted.append(attributes)
        is_right = self.verbs is None or attributes.verb in self.verbs
        return AccessDecision(allowed=is_right and attributes.resource != self.denied)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        raise AssertionError("rules are not listed here")


def become(
    rights: Rights, *, requester: User = AGENT, on: Attributes = LISTING, **headers: str
) -> Impersonated | None:
    given = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
    return Impersonation(rights).impersonated(requester, given, on)


OLD = frozenset({"impersonate"})


def test_a_request_without_the_headers_is_its_senders() -> None:
    """Also if a header of that family is unknown or empty."""
    assert become(Rights()) is None
    assert become(Rights(), zz="x") is None
    assert become(Rights(), user="") is None


def test_every_part_of_an_identity_needs_a_right() -> None:
    """Name, id, each group, and each value of each extra."""
    rights = Rights(OLD)
    found = become(rights, user="jane", group="a\nb", uid="7", extra_scopes="x\ny")
    assert found == Impersonated(
        User("jane", "7", ("a", "b", "system:authenticated"), {"scopes": ("x", "y")})
    )
    wanted = [(w.verb, w.group, w.resource, w.subresource, w.name) for w in rights.wanted[1:]]
    assert wanted == [
        ("impersonate", "", "users", "", "jane"),
        ("impersonate", IDENTITY, "uids", "", "7"),
        ("impersonate", "", "groups", "", "a"),
        ("impersonate", "", "groups", "", "b"),
        ("impersonate", IDENTITY, "userextras", "scopes", "x"),
        ("impersonate", IDENTITY, "userextras", "scopes", "y"),
    ]


def test_a_service_account_is_impersonated_by_the_right_to_it() -> None:
    """In its namespace, and with the groups that such accounts have."""
    rights = Rights(OLD)
    found = become(rights, user="system:serviceaccount:ns:bot")
    wanted = rights.wanted[-1]
    assert (wanted.resource, wanted.namespace, wanted.name) == ("serviceaccounts", "ns", "bot")
    assert found is not None
    assert found.user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )


@pytest.mark.parametrize("part", ["users", "groups", "uids", "userextras"])
def test_a_user_without_the_right_to_a_part_is_refused(part: str) -> None:
    """403, which names what was looked for first: the right to impersonate on this request."""
    with pytest.raises(StatusError) as refused:
        become(Rights(OLD, part), user="jane", group="a", uid="7", extra_scopes="x")
    assert (refused.value.code, refused.value.message) == (
        403,
        f'pods is forbidden: User "{AGENT.name}" cannot impersonate-on:user-info:list resource "pods" '
        'in API group "" in the namespace "team"',
    )


@pytest.mark.parametrize(
    ("name", "asked", "groups"),
    [
        ("jane", None, ("system:authenticated",)),
        ("jane", "system:unauthenticated", ("system:unauthenticated",)),
        ("system:anonymous", None, ("system:unauthenticated",)),
        ("system:anonymous", "system:unauthenticated", ("system:unauthenticated",)),
    ],
)
def test_the_groups_of_all_users(name: str, asked: str | None, groups: tuple[str, ...]) -> None:
    """One of the two that say whether a user is known, once."""
    headers = {} if asked is None else {"group": asked}
    found = become(Rights(OLD), user=name, **headers)
    assert found is not None
    assert found.user.groups == groups


MODES = [
    ("jane", AGENT, "user-info", "users", "jane"),
    ("system:serviceaccount:ns:bot", AGENT, "serviceaccount", "serviceaccounts", "bot"),
    ("system:node:n1", AGENT, "arbitrary-node", "nodes", "n1"),
    (
        "system:node:n1",
        User(AGENT.name, extra={"authentication.kubernetes.io/node-name": ("n1",)}),
        "associated-node",
        "nodes",
        "*",
    ),
]


@pytest.mark.parametrize(("name", "requester", "mode", "resource", "named"), MODES)
def test_a_constrained_mode_needs_two_rights(
    name: str, requester: User, mode: str, resource: str, named: str
) -> None:
    """To be that user, and to do this request as one."""
    both = frozenset({f"impersonate:{mode}", f"impersonate-on:{mode}:list"})
    rights = Rights(both)
    found = become(rights, requester=requester, user=name)
    assert found is not None
    assert (found.user.name, found.constraint) == (name, f"impersonate:{mode}")
    on, part = rights.wanted
    assert (on.verb, on.resource, on.namespace) == (f"impersonate-on:{mode}:list", "pods", "team")
    assert (part.verb, part.group, part.resource) == (f"impersonate:{mode}", IDENTITY, resource)
    assert part.name == named
    for one in both:
        with pytest.raises(StatusError):
            become(Rights(frozenset({one})), requester=requester, user=name)


def test_a_node_has_the_group_of_nodes_in_a_constrained_mode_only() -> None:
    """The old way adds no group but that of all users."""
    constrained = Rights(
        frozenset({"impersonate:arbitrary-node", "impersonate-on:arbitrary-node:list"})
    )
    found = become(constrained, user="system:node:n1")
    assert found is not None
    assert found.user.groups == ("system:nodes", "system:authenticated")
    found = become(Rights(OLD), user="system:node:n1")
    assert found is not None
    assert found.user.groups == ("system:authenticated",)


@pytest.mark.parametrize(
    "headers",
    [
        {"user": "jane", "group": "system:masters"},
        {"user": "jane", "group": ""},
        {"user": "jane", "extra_plain": "x"},
        {"user": "jane", "extra_example.com%2fkey": ""},
        {"user": "system:node:n1", "group": "a"},
        {"user": "system:serviceaccount:ns:bot", "uid": "7"},
    ],
)
def test_what_no_constrained_mode_allows(headers: dict[str, str]) -> None:
    """The masters, groups and extras that make no sense, and nodes or accounts with more than a name. The old way allows them."""
    modes = ("user-info", "serviceaccount", "arbitrary-node")
    verbs = frozenset(
        verb for mode in modes for verb in (f"impersonate:{mode}", f"impersonate-on:{mode}:list")
    )
    with pytest.raises(StatusError) as refused:
        become(Rights(verbs), **headers)
    assert refused.value.code == 403
    found = become(Rights(OLD), **headers)
    assert found is not None
    assert found.constraint == ""


def test_many_groups_are_allowed_by_the_right_to_all() -> None:
    """In a constrained mode, `*` is looked for before each name."""
    rights = Rights(frozenset({"impersonate:user-info", "impersonate-on:user-info:list"}))
    assert become(rights, user="jane", group="a\nb\nc\nd") is not None
    assert [w.name for w in rights.wanted if w.resource == "groups"] == ["*"]


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"group": "g"}, 'UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)'),
        ({"uid": "7"}, 'UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            {"extra_a": "x\ny"},
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"x", "y"}}',
        ),
    ],
)
def test_a_part_without_a_name_is_refused(headers: dict[str, str], shown: str) -> None:
    """400, in the words of the real server."""
    with pytest.raises(StatusError) as refused:
        become(Rights(), **headers)
    message = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    assert (refused.value.code, refused.value.message) == (400, message)


def test_the_first_of_several_names_counts() -> None:
    """As with any header of one value."""
    found = become(Rights(OLD), user="jane\nroot")
    assert found is not None
    assert found.user.name == "jane"
