"""Writes of parts of an object: several endpoints, one revision.

The outcome is that of a patch through each endpoint, one after the other, with the rules of each; only the intermediate states are
never written.
"""

from __future__ import annotations

from functools import partial

from drayman.api.struct import Json
from drayman.apiserver.protocol.errors import conflict, no_such_resource
from drayman.apiserver.protocol.limits import within_size
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.served.conversion import from_hub
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.resources import Subresource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import put
from drayman.apiserver.verbs.patches import reread
from drayman.apiserver.verbs.quick_parts import changed_quickly
from drayman.apiserver.verbs.updating import check_uid, plan_replacement
from drayman.cluster.backend import PartsBody
from drayman.cluster.embedded.model import Delete, Operation, Stored
from drayman.cluster.writes import Parts, by_endpoint


def meant_object(call: Call, body: PartsBody) -> Stored:
    """The object of a call, if it is the one, and the version, that the body is about. Raises StatusError 404 and 409."""
    existing = call.existing()
    check_uid(call, existing, body.uid)
    if body.resource_version and body.resource_version != str(existing.revision):
        raise conflict(call.subject)
    return existing


async def write_parts(call: Call, body: PartsBody) -> Result:
    """Replace parts of the object of a call. `call.subresource` is the endpoint that all of them go through, if any."""
    existing = meant_object(call, body)
    calls = endpoint_calls(call, body.parts)
    new = changed_quickly(calls, existing.value)
    if new is None:
        return Result(await _write_fully(calls, existing))
    if new is existing.value:
        return Result(existing)
    return Result(await _put(call, existing, new))


def endpoint_calls(call: Call, parts: Parts) -> list[tuple[Call, Parts]]:
    """A call for each endpoint. Raises StatusError 404 where there is no such endpoint."""
    if call.subresource is not None:
        return [(call, parts)]
    found = []
    for name, some in by_endpoint(parts, ""):
        endpoint = call.resource.subresource(name) if name else None
        if name and endpoint is None:
            raise no_such_resource()
        found.append((_through(call, endpoint) if name else call, some))
    return found


def _through(call: Call, endpoint: Subresource | None) -> Call:
    """The same call through another endpoint."""
    return Call(
        call.core,
        call.resource,
        call.version,
        call.verb,
        call.namespace,
        call.name,
        endpoint,
        user=call.user,
        write=call.write,
        warnings=call.warnings,
    )


async def _put(call: Call, existing: Stored, new: Object) -> Stored:
    encode = within_size(stored_form(new, call.resource.hub_kind), call.subject)
    return await put(call, existing, encode)


async def _write_fully(calls: list[tuple[Call, Parts]], existing: Stored) -> Stored:
    """By the rules for whole objects, each endpoint on top of the one before it."""
    latest, changed = existing, False
    for call, parts in calls:
        new, operations = plan_replacement(call, latest, partial(_patched, parts))
        if not operations:
            continue
        changed = True
        latest = Stored(
            call.key, existing.revision, stored_form(new, call.resource.hub_kind)(existing.revision)
        )
        if isinstance(operations[0], Delete):
            return await _finish(call, operations, latest)
    if not changed:
        return existing
    return await _put(calls[0][0], existing, latest.value)


async def _finish(call: Call, operations: list[Operation], last: Stored) -> Stored:
    """The last finalizer is gone, and with it the object."""
    if not call.dry_run:
        await call.core.store.write(operations)
    return last


def _patched(parts: Parts, call: Call, obj: Object) -> Object:
    current = from_hub(call.resource, obj, call.version)
    for path, value in parts.items():
        place: Json = current
        for name in path[:-1]:
            if not isinstance(place.get(name), dict):
                place[name] = {}
            place = place[name]
        place[path[-1]] = value
    return reread(call, current)
