"""What a pod reads from the cluster: ConfigMaps, Secrets, and tokens of its service account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from drayman.api.pod_sources import DEFAULT_ACCOUNT
from drayman.api.struct import Json
from drayman.cluster.client import Client, Token
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import CONFIG_MAPS, JsonObject, Resource, generic
from drayman.node.agent.environment import (
    Sources,
    config_map_data,
    secret_data,
    wanted_sources,
)
from drayman.node.agent.spec import RunnablePod, TokenSource

SECRETS: Final = generic("v1", "secrets", "Secret")


async def read_sources(client: Client, pod: RunnablePod) -> Sources:
    """Raises ClusterError; what does not exist is left out."""
    maps, secrets = wanted_sources(pod)
    namespace = pod.metadata.namespace
    found = await asyncio.gather(
        _read(client, CONFIG_MAPS, maps, namespace, config_map_data),
        _read(client, SECRETS, secrets, namespace, secret_data),
    )
    return Sources(*found)


async def _read(
    client: Client,
    resource: Resource[JsonObject],
    names: Iterable[str],
    namespace: str,
    data: Callable[[JsonObject], dict[str, bytes]],
) -> dict[str, dict[str, bytes]]:
    found = {}
    for name in sorted(names):
        try:
            found[name] = data(await client.get(resource, name, namespace))
        except NotFoundError:
            continue
    return found


async def request_token(client: Client, pod: RunnablePod, wanted: TokenSource) -> Token:
    """A token that ends with the pod. Raises ClusterError."""
    meta = pod.metadata
    spec: dict[str, Json] = {
        "audiences": [wanted.audience] if wanted.audience else [],
        "expirationSeconds": wanted.expiration_seconds,
        "boundObjectRef": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": meta.name,
            "uid": meta.uid,
        },
    }
    account = pod.spec.service_account_name or DEFAULT_ACCOUNT
    return await client.request_token(account, meta.namespace, spec)
