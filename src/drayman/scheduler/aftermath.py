"""The outcome of a decision whose writes were refused part way or got no answer, on a cluster without transactions.

Some of the writes may have been done. Until that is known, their devices must not count as free, and a pod that may be bound must not be
removed from its claims: the server is asked until it answers. While it does not answer, nothing else can be decided either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    PartialWriteError,
)
from drayman.cluster.resources import (
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    VOLUME_CLAIMS,
)
from drayman.placement.decision.placements import Placement
from drayman.placement.state import ClusterState
from drayman.placement.volumes import Taken

_log: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 0.5
T = TypeVar("T")


async def find_out(client: Client, state: ClusterState, placement: Placement) -> bool:
    """Bring the state up to date with the claims of a decision. Returns whether its pod has its node after all."""
    for claim in placement.claims:
        written = await _ask_for_claim(client, claim)
        if written is not None and written.metadata.uid == claim.metadata.uid:
            state.confirm_claim(written)
    for made in placement.made:
        written = await _ask_for_claim(client, made.claim)
        if written is not None:
            state.adopt(made.holder, written)
            state.confirm_claim(written)
    if placement.volumes is not None:
        await _find_out_about_volumes(client, state, placement.volumes)
    return await is_bound(client, placement)


async def _find_out_about_volumes(client: Client, state: ClusterState, taken: Taken) -> None:
    for volume in taken.volumes:
        found = await _ask(partial(client.get, PERSISTENT_VOLUMES, volume.metadata.name))
        if found is not None:
            state.volumes.confirm(found)
    for claim in taken.claims:
        metadata = claim.metadata
        seen = await _ask(partial(client.get, VOLUME_CLAIMS, metadata.name, metadata.namespace))
        if seen is not None:
            state.volumes.confirm(seen)


async def is_bound(client: Client, placement: Placement) -> bool:
    """Whether the server has the pod of a decision on its node."""
    metadata = placement.pod.metadata
    pod = await _ask(lambda: client.get(PODS, metadata.name, metadata.namespace))
    return (
        pod is not None
        and pod.metadata.uid == metadata.uid
        and pod.spec.node_name == placement.node
    )


async def learn_holders(client: Client, state: ClusterState, error: ClusterError) -> bool:
    """Take in the claims that have the devices for which a write was refused. Returns whether it was refused for that reason."""
    refusal = error.__cause__ if isinstance(error, PartialWriteError) else error
    holders = refusal.holders if isinstance(refusal, ConflictError) else ()
    for namespace, name in holders:
        found = await _ask(partial(client.get, RESOURCE_CLAIMS, name, namespace))
        if found is not None:
            state.learn_claim(found)
    return bool(holders)


async def _ask_for_claim(client: Client, claim: ResourceClaim) -> ResourceClaim | None:
    metadata = claim.metadata
    return await _ask(lambda: client.get(RESOURCE_CLAIMS, metadata.name, metadata.namespace))


async def _ask(get: Callable[[], Awaitable[T]]) -> T | None:
    """The server's answer; None if the object does not exist."""
    while True:
        try:
            return await get()
        except NotFoundError:
            return None
        except ClusterError as error:
            _log.warning("cannot find out what became of a write: %s", error)
            await asyncio.sleep(_PAUSE_S)
