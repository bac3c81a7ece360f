"""The implementations of the client that the contract is checked against.

Every case runs against each of them, and against the server of DRAYMAN_TEST_KUBECONFIG where that is set. Each case has a namespace of
its own, which is deleted at its end, and leaves nothing else behind; that the namespaces are gone is waited for once all cases are over.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.contract.cleaning import SERVICE_ACCOUNTS, all_gone, end_namespace
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import Client, HttpClient, InProcessClient
from drayman.cluster.embedded import Store
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.resources import NAMESPACES, JsonObject, Resource

KUBECONFIG = os.environ.get("DRAYMAN_TEST_KUBECONFIG", "")


@dataclass(slots=True)
class Cluster:
    """A client of a cluster, and a namespace to work in."""

    client: Client
    namespace: str
    atomic: bool = False
    """Whether several writes at once are a transaction."""
    forgets: bool = True
    """Whether it is known to have forgotten its first versions. A server that has just been started may have all of them."""

    def cluster_wide_name(self, name: str) -> str:
        """A name for an object outside of namespaces, which other cases cannot meet."""
        return f"{self.namespace}-{name}"

    async def remove(self, resource: Resource, name: str) -> None:
        """Deletes an object outside of namespaces, if it is there."""
        try:
            await self.client.delete(resource, name)
        except NotFoundError:
            return


Connect = Callable[[Path], AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[Client]:
    """The embedded server, called directly."""
    store = Store.open(None)
    try:
        server = make_server(store)
        await create_first_objects(server.core)
        # A server that has run for a while has forgotten its first versions, so these do too.
        store.compact(store.revision)
        async with InProcessClient(ServerBackend(server.core)) as client:
            yield client
    finally:
        store.close()


@asynccontextmanager
async def embedded_http(folder: Path) -> AsyncIterator[Client]:
    """The embedded server behind TLS, its token and RBAC, found by its kubeconfig."""
    instance = await start(Options(folder=Folder(folder / "drayman"), durable=True))
    try:
        instance.store.compact(instance.store.revision)
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            yield client
    finally:
        await instance.stop()


@asynccontextmanager
async def named_by_environment(folder: Path) -> AsyncIterator[Client]:
    """Whatever server DRAYMAN_TEST_KUBECONFIG names."""
    async with HttpClient.from_environment(Path(KUBECONFIG)) as client:
        yield client


async def _add_service_account(client: Client, namespace: str) -> None:
    """Pods need it where service accounts are enforced, and a controller may not have made it yet."""
    try:
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
    except AlreadyExistsError:
        return


IMPLEMENTATIONS: dict[str, Connect] = {"in-process": in_process, "http": embedded_http}
if KUBECONFIG:
    IMPLEMENTATIONS["kubeconfig"] = named_by_environment


ENDING: list[str] = []
"""Namespaces on the server of DRAYMAN_TEST_KUBECONFIG that have been deleted."""


@asynccontextmanager
async def cluster(implementation: str, folder: Path) -> AsyncIterator[Cluster]:
    async with IMPLEMENTATIONS[implementation](folder) as client:
        is_ours = implementation != "kubeconfig"
        atomic = implementation == "in-process"
        async with working_in(client, atomic=atomic, forgets=is_ours) as found:
            if not is_ours:
                ENDING.append(found.namespace)
            yield found


@asynccontextmanager
async def working_in(
    client: Client, *, atomic: bool = False, forgets: bool = True
) -> AsyncIterator[Cluster]:
    """A namespace of its own on some cluster, which is on its way out afterwards."""
    name = f"contract-{secrets.token_hex(4)}"
    made: JsonObject = {"metadata": {"name": name}}
    await client.create(NAMESPACES.as_values(), made)
    try:
        await _add_service_account(client, name)
        yield Cluster(client, name, atomic, forgets)
    finally:
        await end_namespace(client, name)


async def wait_until_gone() -> None:
    """Until no namespace of these cases is left on the server of DRAYMAN_TEST_KUBECONFIG."""
    async with HttpClient.from_environment(Path(KUBECONFIG)) as client:
        await all_gone(client, ENDING)
