"""Who a request is from, where it says that it is from somebody else."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from drayman.apiserver.protocol.access import AccessDecision, Attributes, User
from drayman.apiserver.protocol.environment import SystemClock
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.security.authentication import TokenAuthenticator
from drayman.apiserver.security.tokens import TokenIssuer, new_signing_key
from drayman.apiserver.verbs.core import StoredObjects
from drayman.cluster.embedded.store import Store

TOKEN = "the-administrators-token"
IDENTITY = "authentication.k8s.io"


@dataclass
class Asked:
    """Allows everything but some resources, and remembers what it was asked for."""

    denied: str = ""
    wanted: list[Attributes] = field(default_factory=list)

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        self.wanted.append(attributes)
        return AccessDecision(allowed=attributes.resource != self.denied)


async def become(authorizer: Asked, **headers: str) -> User:
    with Store.open(None) as store:
        authenticator = TokenAuthenticator(
            TOKEN, TokenIssuer(new_signing_key()), StoredObjects(store), authorizer, SystemClock()
        )
        given = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
        request = Request("GET", "/api", headers={"authorization": f"Bearer {TOKEN}", **given})
        return await authenticator.authenticate(request)


async def test_every_part_of_an_identity_needs_a_right() -> None:
    """Name, each group, each value of each extra, and the id."""
    authorizer = Asked()
    user = await become(authorizer, user="jane", group="a\nb", uid="7", extra_scopes="x\ny")
    assert user == User("jane", "7", ("a", "b", "system:authenticated"), {"scopes": ("x", "y")})
    wanted = [(w.verb, w.group, w.resource, w.subresource, w.name) for w in authorizer.wanted]
    assert wanted == [
        ("impersonate", "", "users", "", "jane"),
        ("impersonate", "", "groups", "", "a"),
        ("impersonate", "", "groups", "", "b"),
        ("impersonate", IDENTITY, "userextras", "scopes", "x"),
        ("impersonate", IDENTITY, "userextras", "scopes", "y"),
        ("impersonate", IDENTITY, "uids", "", "7"),
    ]


async def test_a_service_account_is_impersonated_by_the_right_to_it() -> None:
    """In its namespace, and with the groups that such accounts have."""
    authorizer = Asked()
    user = await become(authorizer, user="system:serviceaccount:ns:bot")
    (wanted,) = authorizer.wanted
    assert (wanted.resource, wanted.namespace, wanted.name) == ("serviceaccounts", "ns", "bot")
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )


@pytest.mark.parametrize(
    ("denied", "message"),
    [
        ("users", 'users "jane" is forbidden: User "kubernetes-admin" cannot impersonate resource '
         '"users" in API group "" at the cluster scope'),
        ("groups", 'groups "a" is forbidden: User "kubernetes-admin" cannot impersonate resource '
         '"groups" in API group "" at the cluster scope'),
        ("uids", f'uids.{IDENTITY} "7" is forbidden: User "kubernetes-admin" cannot impersonate '
         f'resource "uids" in API group "{IDENTITY}" at the cluster scope'),
        ("userextras", f'userextras.{IDENTITY} "x" is forbidden: User "kubernetes-admin" cannot '
         f'impersonate resource "userextras/scopes" in API group "{IDENTITY}" at the cluster scope'),
    ],
    ids=["users", "groups", "uids", "userextras"],
)  # fmt: skip
async def test_who_may_not_be_a_part_is_not_the_whole(denied: str, message: str) -> None:
    """403, which names the part."""
    with pytest.raises(StatusError) as refused:
        await become(Asked(denied), user="jane", group="a", uid="7", extra_scopes="x")
    assert (refused.value.code, refused.value.message) == (403, message)


@pytest.mark.parametrize(
    ("name", "asked", "groups"),
    [
        ("jane", "", ("system:authenticated",)),
        ("jane", "system:unauthenticated", ("system:unauthenticated",)),
        ("system:anonymous", "", ("system:unauthenticated",)),
        ("system:anonymous", "system:unauthenticated", ("system:unauthenticated",)),
    ],
)
async def test_the_groups_everybody_is_in(name: str, asked: str, groups: tuple[str, ...]) -> None:
    """One of the two that say whether somebody is known, once."""
    headers = {"group": asked} if asked else {}
    assert (await become(Asked(), user=name, **headers)).groups == groups
