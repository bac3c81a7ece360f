"""Several writes where there are no transactions: one after the other.

A refusal leaves earlier writes behind, so those are taken back as far as they can be: what was created is deleted, if it has not changed
since (by uid and resourceVersion). Patches and deletes cannot be undone without risk to what others wrote; they stay and are named
in a PartialWriteError.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    ClusterError,
    ConflictError,
    InvalidError,
    NotFoundError,
    PartialWriteError,
    Status,
)
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import Patch, json_patch, merge_patch
from drayman.cluster.resources import JsonObject
from drayman.cluster.writes import (
    BindWrite,
    CreateWrite,
    DeleteWrite,
    Parts,
    PartsWrite,
    PatchWrite,
    Path,
    RemoveWrite,
    Write,
    by_endpoint,
    describe,
)

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


async def write_in_order(client: Client, writes: Sequence[Write]) -> tuple[object, ...]:
    """One after the other; at the first refusal, what was created before is deleted and the refusal raised."""
    done: list[object] = []
    for write in writes:
        try:
            done.append(await _carry_out(client, write))
        except (ClusterError, ValueError) as refusal:
            await _take_back(client, writes, done, refusal)
            raise
    return tuple(done)


async def _carry_out(client: Client, write: Write) -> object:
    match write:
        case CreateWrite():
            return await client.create(
                write.resource, write.value, write.namespace, options=write.options
            )
        case PatchWrite():
            return await client.patch(
                write.resource,
                write.name,
                write.patch,
                write.namespace,
                subresource=write.subresource,
                options=write.options,
            )
        case PartsWrite():
            return await _write_parts(client, write)
        case RemoveWrite():
            await _remove(client, write)
            return None
        case DeleteWrite():
            return await client.delete(
                write.resource, write.name, write.namespace, options=write.options
            )
        case BindWrite():
            await client.bind(write.name, write.namespace, write.node, uid=write.uid)
            return None


async def _take_back(
    client: Client, writes: Sequence[Write], done: Sequence[object], refusal: Exception
) -> None:
    """Deletes what was created, the latest first. Raises PartialWriteError where something has to stay."""
    left_behind: list[str] = []
    for write, outcome in reversed(tuple(zip(writes, done, strict=False))):
        if not await _is_taken_back(client, write, outcome):
            left_behind.append(describe(write))
    if left_behind:
        raise PartialWriteError(tuple(left_behind)) from refusal


async def _is_taken_back(client: Client, write: Write, outcome: object) -> bool:
    """Whether nothing of a write is left. A dry run never left anything."""
    if not isinstance(write, BindWrite) and write.options.dry_run:
        return True
    return isinstance(write, CreateWrite) and await _delete_unchanged(client, write, outcome)


async def _delete_unchanged(client: Client, write: CreateWrite[Any], created: object) -> bool:
    found = write.resource.codec.identity(created)
    # Foreground and orphan finalizers would keep the object; nothing depends on one that was just made.
    unchanged = DeleteOptions(
        uid=found.uid,
        resource_version=found.resource_version,
        grace_period_seconds=0,
        propagation="Background",
    )
    try:
        await client.delete(write.resource, found.name, found.namespace or None, options=unchanged)
    except NotFoundError:
        return True
    except ClusterError as error:
        _log.warning("could not take back %s: %s", describe(write), error)
        return False
    return True


async def _write_parts(client: Client, write: PartsWrite[T]) -> T:
    """One patch after the other. Later ones are for the version that earlier ones produced."""
    resource = write.resource
    version = write.resource_version
    for subresource, parts in by_endpoint(write.parts, write.subresource):
        try:
            written = await client.patch(
                resource,
                write.name,
                _patch(parts, write.uid, version),
                write.namespace,
                subresource=subresource,
                options=write.options,
            )
        except InvalidError:
            # Servers say that a uid cannot be changed when they mean that it is a different object.
            await _check_uid(client, write)
            raise
        if version:
            version = resource.codec.identity(written).resource_version
    return written


def _patch(parts: Parts, uid: str, version: str) -> Patch:
    conditions: dict[Path, Json] = {
        ("metadata", name): value
        for name, value in (("uid", uid), ("resourceVersion", version))
        if value
    }
    wanted = {**conditions, **parts}
    # A merge patch creates missing parents, but it merges objects where a part is to be replaced.
    if any(isinstance(value, dict) for value in parts.values()):
        return json_patch(
            [{"op": "add", "path": _pointer(path), "value": v} for path, v in wanted.items()]
        )
    return merge_patch(_nested(wanted))


def _pointer(path: Path) -> str:
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path)


def _nested(parts: Parts) -> JsonObject:
    result: JsonObject = {}
    for path, value in parts.items():
        place = result
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
    return result


async def _check_uid(client: Client, write: PartsWrite[T]) -> None:
    """Raises ConflictError if the object is not the one that was meant."""
    if not write.uid:
        return
    try:
        found = await client.get(write.resource, write.name, write.namespace)
    except NotFoundError:
        return
    uid = write.resource.codec.identity(found).uid
    if uid != write.uid:
        message = (
            f"{write.resource.qualified} {write.name!r} is another object by now:"
            f" its uid is {uid}, not {write.uid}"
        )
        raise ConflictError(Status(status="Failure", message=message, reason="Conflict", code=409))


async def _remove(client: Client, write: RemoveWrite[T]) -> None:
    """By separate calls. The finalizers, which are not part of the status, come last: without them an object may be gone at any time."""
    last = write.last
    # Servers write a status whatever uid comes with it.
    await _check_uid(client, last)
    steps = list(reversed(by_endpoint(last.parts, last.subresource)))
    last = await _change(client, last, *steps[0])
    try:
        for step in steps[1:]:
            last = await _change(client, last, *step)
        await client.delete(
            last.resource, last.name, last.namespace, options=DeleteOptions(uid=last.uid)
        )
    except NotFoundError:
        return  # it was already marked, and only waited for this


async def _change(
    client: Client, last: PartsWrite[T], subresource: str, parts: Parts
) -> PartsWrite[T]:
    """Makes one of several changes. The next is for the version that this one produced."""
    written = await _write_parts(client, replace(last, parts=parts, subresource=subresource))
    if not last.resource_version:
        return last
    version = last.resource.codec.identity(written).resource_version
    return replace(last, resource_version=version)
