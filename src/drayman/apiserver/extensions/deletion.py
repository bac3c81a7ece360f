"""Deletion of definitions: first the objects, then the definition.

The definition is marked and keeps a finalizer while objects remain. Objects that wait for their own finalizers delay it;
it is gone with the last of them.
"""

from __future__ import annotations

from drayman.api.times import timestamp
from drayman.apiserver.extensions.definition import (
    CLEANUP,
    HUB,
    STORAGE,
    TERMINATING,
    Definition,
    condition,
)
from drayman.apiserver.extensions.naming import set_names
from drayman.apiserver.requests.calls import Call, Result, own_call
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core, put
from drayman.apiserver.verbs.deleting import admit_deletion, check_preconditions, remove
from drayman.cluster.breaks import Breaks
from drayman.cluster.embedded.errors import ConflictError
from drayman.cluster.embedded.model import Delete, Key, Put


async def delete_definition(call: Call) -> Result:
    """Mark a definition as being deleted and remove its objects. Returns the marked definition."""
    existing = call.existing()
    check_preconditions(call, existing)
    obj = decode(existing.data)
    admit_deletion(call, obj, call.context)
    if "deletionTimestamp" in obj["metadata"]:
        await clean_up(call.core, call.name)
        return Result(existing)
    _mark(obj, call.context.now)
    marked = await put(call, existing, stored_form(obj, call.resource.hub_kind))
    if not call.dry_run:
        await clean_up(call.core, call.name)
    return Result(marked)


def _mark(obj: Object, now: str) -> None:
    metadata, status = obj["metadata"], obj.setdefault("status", {})
    metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0
    metadata["generation"] = metadata.get("generation", 0) + 1
    finalizers = metadata.setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    found = [one for one in status.get("conditions") or () if one["type"] != TERMINATING]
    text = "CustomResource deletion is in progress"
    mark = condition(TERMINATING, "True", "InstanceDeletionInProgress", text, now, None)
    status["conditions"] = [*found, mark]


async def clean_up(core: Core, name: str) -> None:
    """Remove the objects of a definition being deleted, and then the definition, unless something waits."""
    key = Key(STORAGE, "", name)
    existing = core.store.latest(key)
    if existing is None or "deletionTimestamp" not in existing.value["metadata"]:
        return
    definition = Definition(existing.value)
    resource = core.resources.named(definition.group, definition.plural)
    if resource is not None and resource.custom:
        await _remove_objects(core, resource)
    if not core.store.list(name):
        await _finish(core, key)
        await _reconsider_names(core, definition.group)


async def _remove_objects(core: Core, resource: ApiResource) -> None:
    breaks = Breaks()
    for stored in core.store.list(resource.storage_name):
        existing = core.store.latest(stored.key)
        if existing is not None and "deletionTimestamp" not in existing.value["metadata"]:
            try:
                await remove(own_call(core, resource, "delete", stored.key), existing)
            except ConflictError:
                continue  # Another client is writing it: the next look sees the result.
        await breaks.between()  # a store in memory writes without a pause


async def _finish(core: Core, key: Key) -> None:
    """Remove the finalizer, and also the definition if it was the last."""
    existing = core.store.latest(key)
    if existing is None:
        return
    obj = decode(existing.data)
    finalizers = [one for one in obj["metadata"].get("finalizers") or () if one != CLEANUP]
    if finalizers:
        obj["metadata"]["finalizers"] = finalizers
    else:
        obj["metadata"].pop("finalizers", None)
    encode = stored_form(obj, HUB)
    operation = Put if finalizers else Delete
    try:
        await core.store.write([operation(key, encode, expected=existing.revision)])
    except ConflictError:
        return


async def _reconsider_names(core: Core, group: str) -> None:
    """Give a name that has become free to a definition that wants it."""
    for stored in core.store.list(STORAGE):
        definition = Definition(stored.value)
        if definition.group != group or definition.is_true("NamesAccepted"):
            continue
        obj = decode(stored.data)
        set_names(obj, core.objects, timestamp(core.clock.now()))
        encode = stored_form(obj, HUB)
        try:
            await core.store.write([Put(stored.key, encode, expected=stored.revision)])
        except ConflictError:
            continue
