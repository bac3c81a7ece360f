"""A server with rights and an administrator, and requests in the name of other users."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from drayman.apiserver.instance.access import secure
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.protocol.exchange import LongResponse, Query, Request, Response
from drayman.apiserver.security.tokens import TokenIssuer, new_signing_key
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.store import Store

ADMIN_TOKEN = "the-administrators-token"
RBAC = "rbac.authorization.k8s.io"
RBAC_PATH = f"/apis/{RBAC}/v1"
TEAM = "/api/v1/namespaces/team"
TEAM_RBAC = f"{RBAC_PATH}/namespaces/team"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"

Body = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])


@dataclass(slots=True)
class Realm:
    """The server. Users other than the administrator have the rights that tests give them."""

    server: ApiServer

    async def send(
        self,
        method: str,
        path: str,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Reply:
        """A request by the administrator, unless the headers say otherwise."""
        data = b"" if body is None else json.dumps(body).encode()
        given = {"authorization": f"Bearer {ADMIN_TOKEN}", **(headers or {})}
        asked = Query(tuple((name.replace("_", "-"), value) for name, value in query.items()))
        answer = await self.server.handle(Request(method, path, asked, given, data))
        if isinstance(answer, LongResponse):
            answer = answer.whole()
        assert isinstance(answer, Response)
        return Reply(answer.status, json.loads(answer.body))

    async def by(
        self, user: str, method: str, path: str, body: Body = None, kind: str = "", **query: str
    ) -> Reply:
        """A request by another user. `kind` is the type of its body."""
        headers = {"impersonate-user": user, **({"content-type": kind} if kind else {})}
        return await self.send(method, path, body, headers, **query)

    async def make(self, path: str, body: Mapping[str, Any]) -> None:
        reply = await self.send("POST", path, body)
        assert reply.status == 201, reply

    async def let(self, user: str, *rules: Mapping[str, Any], everywhere: bool = False) -> None:
        """Give a user rules, in the namespace `team` or everywhere."""
        name = f"of-{user}"
        path = RBAC_PATH if everywhere else TEAM_RBAC
        prefix = "Cluster" if everywhere else ""
        await self.make(f"{path}/{prefix.lower()}roles", role(name, *rules, kind=f"{prefix}Role"))
        bound = binding(name, user, f"{prefix}Role", name, kind=f"{prefix}RoleBinding")
        await self.make(f"{path}/{prefix.lower()}rolebindings", bound)


def rule(resources: str, verbs: str, groups: str = "", names: str = "") -> dict[str, Any]:
    """A rule of words separated by spaces; without a group it is about the core group."""
    made: dict[str, Any] = {
        "apiGroups": groups.split() or [""],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return {**made, "resourceNames": names.split()} if names else made


def role(name: str, *rules: Mapping[str, Any], kind: str = "Role", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "rules": list(rules),
        **more,
    }


def binding(
    name: str, user: str, role_kind: str, role_name: str, *, kind: str = "RoleBinding"
) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role_name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


@asynccontextmanager
async def realm() -> AsyncIterator[Realm]:
    """A server with the namespace `team`."""
    with Store.open(None) as store:
        server = make_server(store)
        secure(server, ADMIN_TOKEN, TokenIssuer(new_signing_key()))
        await create_first_objects(server.core)
        made = Realm(server)
        await made.make("/api/v1/namespaces", {"metadata": {"name": "team"}})
        yield made
