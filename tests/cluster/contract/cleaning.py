"""The end of a namespace that a case of the contract has worked in.

A namespace is gone when all in it is, and that takes a Kubernetes cluster seconds: a controller deletes what is there until nothing is
left. Two things of the contract would never go. A claim that is reserved for something that no controller knows keeps its finalizer, and a
pod that is bound to a node that does not exist has no kubelet to end it. And there are API servers without any controller, where nobody
ends a namespace at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from cluster.contract.objects import DEPLOYMENTS, POD_VALUES
from drayman.cluster import Client, DeleteOptions, merge_patch
from drayman.cluster.errors import ConflictError, NotFoundError
from drayman.cluster.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    RESOURCE_CLAIMS,
    JsonObject,
    Resource,
    generic,
)
from patience import PATIENCE_S

CLAIMS: Final = RESOURCE_CLAIMS.as_values()
PLACES: Final = NAMESPACES.as_values()
SERVICE_ACCOUNTS: Final = generic("v1", "serviceaccounts", "ServiceAccount")
CONTENT: Final = (DEPLOYMENTS, POD_VALUES, CLAIMS, CONFIG_MAPS, EVENTS, LEASES, SERVICE_ACCOUNTS)
"""What the cases make."""

QUIET_S: Final = 15.0
"""A namespace of which a controller has said nothing for so long has none."""
_PAUSE_S: Final = 0.2
_AT_ONCE: Final = DeleteOptions(grace_period_seconds=0, propagation="Background")


async def end_namespace(client: Client, namespace: str) -> None:
    """Deletes a namespace and frees what would keep it. Whether it is gone, `all_gone` tells."""
    await client.delete(PLACES, namespace, options=DeleteOptions(propagation="Background"))
    for resource in CONTENT:
        for found in (await client.list_all(resource, namespace)).items:
            await _let_go(client, resource, namespace, found)


async def all_gone(client: Client, namespaces: Iterable[str], *, quiet_s: float = QUIET_S) -> None:
    """Returns when none of them is left. Those that no controller cares for are ended here. Raises AssertionError."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    left = list(namespaces)
    while left := [name for name in left if await _is_left(client, name)]:
        waited = loop.time() - began
        if waited >= quiet_s:
            for name in left:
                await _end_in_place_of_a_controller(client, name)
        assert waited < PATIENCE_S, f"after {waited:.0f} s there still are {left}"
        await asyncio.sleep(_PAUSE_S)


async def _is_left(client: Client, namespace: str) -> bool:
    try:
        await client.get(PLACES, namespace)
    except NotFoundError:
        return False
    return True


async def _let_go(
    client: Client, resource: Resource[JsonObject], namespace: str, found: JsonObject
) -> None:
    """Takes off what holds an object, and deletes a pod without waiting for its kubelet."""
    name = found["metadata"]["name"]
    try:
        if resource is CLAIMS and found.get("status"):
            # While it has devices, a claim must be protected.
            freed = merge_patch(
                {"status": {"allocation": None, "reservedFor": None, "devices": None}}
            )
            await client.patch(resource, name, freed, namespace, subresource="status")
        if found["metadata"].get("finalizers"):
            free = merge_patch({"metadata": {"finalizers": None}})
            await client.patch(resource, name, free, namespace)
        if resource is POD_VALUES:
            await client.delete(resource, name, namespace, options=_AT_ONCE)
    except NotFoundError:
        return


async def _end_in_place_of_a_controller(client: Client, namespace: str) -> None:
    """Deletes what is there and lets the namespace go, unless a controller has said that it is at work."""
    try:
        found = await client.get(PLACES, namespace)
        if (found.get("status") or {}).get("conditions"):
            return
        for resource in CONTENT:
            for item in (await client.list_all(resource, namespace)).items:
                await client.delete(resource, item["metadata"]["name"], namespace, options=_AT_ONCE)
        found["spec"] = {"finalizers": []}
        await client.update(PLACES, found, subresource="finalize")
    except (ConflictError, NotFoundError):  # somebody else is at it
        return
