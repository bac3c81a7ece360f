"""Deletion: at once, after a grace period, or when the last finalizer is gone.

An object that has to stay for a while is marked with a deletion time and its grace period in seconds. Everyone sees the mark as an
ordinary update. Removing finalizers is not the task of this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from drayman.api.times import moment_of, timestamp
from drayman.apiserver.protocol.errors import Subject, conflict
from drayman.apiserver.protocol.options import DeleteOptions
from drayman.apiserver.requests.calls import Call, Result, success
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.strategy import Context, Object
from drayman.apiserver.verbs.admission import Admitted
from drayman.apiserver.verbs.batch import Batch
from drayman.apiserver.verbs.reading import select
from drayman.cluster.embedded.model import Delete, Operation, Put, Stored
from drayman.cluster.embedded.store import Store
from drayman.cluster.together import LARGEST

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


async def delete(call: Call) -> Result:
    """Delete one object, or mark it. Returns a Status, or the object if it stays or its kind returns the object."""
    if call.resource.delete_handler is not None:
        answer = await call.resource.delete_handler(call)
        assert isinstance(answer, Result)
        return answer
    stored, gone = await remove(call, call.existing())
    if gone and not call.resource.answers_with_deleted_object:
        uid = stored.value["metadata"]["uid"]
        return success(replace(call.subject, uid=uid))
    pending = not gone and call.delete.orphan_dependents is False
    return Result(stored, status=202 if pending else 200)


async def delete_collection(call: Call) -> list[Stored]:
    """Delete every selected object of a collection. Returns them as they were."""
    selected = await select(
        call, call.core.store.list(call.resource.storage_name, call.namespace or None)
    )
    if call.resource.delete_handler is not None:
        await _delete_each(call, selected)
        return list(selected)
    for begin in range(0, len(selected), LARGEST):
        if begin:
            await asyncio.sleep(0)  # a store in memory writes without a pause
        await _remove_together(call, selected[begin : begin + LARGEST])
    return list(selected)


async def _delete_each(call: Call, some: Sequence[Stored]) -> None:
    """Delete objects whose deletion does more than remove them."""
    for stored in some:
        if call.core.store.latest(stored.key) is not None:
            await delete(call.about(stored.key.name))


async def _remove_together(call: Call, some: Sequence[Stored]) -> None:
    """Delete objects in one transaction. If one is refused, those before it are still deleted."""
    store = call.core.store
    assert isinstance(store, Store), "a collection is not deleted as part of a batch"
    batch = Batch(store)
    call = replace(call, core=replace(call.core, store=batch))
    try:
        for stored in some:
            existing = batch.latest(stored.key)
            if existing is not None:
                await remove(call.about(stored.key.name), existing)
    finally:
        await batch.commit()


async def remove(call: Call, existing: Stored) -> tuple[Stored, bool]:
    """Carry out a deletion. Returns whether the object is gone."""
    context, value = call.context, existing.value
    # Only members of the metadata are ever replaced; the rest is shared with all readers of the object.
    obj = {**value, "metadata": dict(value["metadata"])}
    check_preconditions(call, existing)
    admit_deletion(call, obj, context)
    marked, gone = _plan(call, obj, context)
    if marked is None and not gone:
        return existing, False
    if call.dry_run:
        shown = marked or obj
        encode = stored_form(shown, call.resource.hub_kind)
        return Stored(call.key, existing.revision, encode(existing.revision)), gone
    operations = _operations(call, existing, marked, gone=gone)
    results = await call.core.store.write(operations)
    return results[-1], gone


def admit_deletion(call: Call, old: Object, context: Context) -> None:
    """Ask admission whether an object may be deleted. Raises StatusError if not."""
    write = Admitted(
        "DELETE", call.resource, "", call.namespace, call.name, new=None, old=old, context=context
    )
    call.core.admission.admit(write)
    call.core.admission.validate(write)


def is_removable(call: Call, obj: Object) -> bool:
    """Whether an object would be removed at once, without a mark: nothing holds it, and its kind has no special deletion."""
    return (
        call.resource.delete_handler is None
        and not call.resource.strategy.graceful
        and not _finalizers(obj["metadata"].get("finalizers") or [], call)
    )


def _operations(
    call: Call, existing: Stored, marked: Object | None, *, gone: bool
) -> list[Operation]:
    """The mark comes first, even if the object is removed at once: it shows watchers the reason."""
    encode = stored_form(existing.value if marked is None else marked, call.resource.hub_kind)
    operations: list[Operation] = []
    expected: int | None = existing.revision
    if marked is not None:
        operations.append(Put(call.key, encode, expected=expected))
        expected = None
    if gone:
        operations.append(Delete(call.key, encode, expected=expected))
    return operations


def check_preconditions(call: Call, existing: Stored) -> None:
    """Refuse to delete an object other than the one meant. Raises StatusError 409."""
    subject = Subject(call.resource.kind, call.resource.group, call.name)
    uid, version = existing.value["metadata"]["uid"], str(existing.revision)
    wanted = call.delete.uid
    if wanted is not None and wanted != uid:
        raise conflict(
            subject,
            f"the UID in the precondition ({wanted}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated",
        )
    wanted = call.delete.resource_version
    if wanted is not None and wanted != version:
        raise conflict(
            subject,
            f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record "
            f"({version}). The object might have been modified",
        )


def _plan(call: Call, obj: Object, context: Context) -> tuple[Object | None, bool]:
    """The object with its mark, None for no change, and whether it is removed now."""
    metadata = obj["metadata"]
    graceful = _grace(call, obj, context)
    if graceful == "pending":
        return None, False
    finalizers = _finalizers(metadata.get("finalizers") or [], call)
    changed = set(finalizers) != set(metadata.get("finalizers") or [])
    if changed:
        metadata["finalizers"] = finalizers
    if graceful is None:
        if not finalizers:
            return None, True
        _mark(metadata, context)
        return obj, False
    return obj, not finalizers and graceful == 0


def _grace(call: Call, obj: Object, context: Context) -> int | str | None:
    """Seconds of grace now set on the object; None if the kind has no grace period; "pending" if nothing is to change."""
    strategy, metadata, asked = call.resource.strategy, obj["metadata"], call.delete.grace_seconds
    if not strategy.graceful:
        return None
    if "deletionTimestamp" not in metadata:
        seconds = strategy.grace_seconds(obj, asked, context)
        _set_deletion(metadata, context.moment + timedelta(seconds=seconds), seconds)
        if metadata.get("generation"):
            metadata["generation"] += 1
        return seconds
    current = metadata.get("deletionGracePeriodSeconds")
    if not current:
        return None
    if asked is None or asked >= current:
        return "pending"
    since = moment_of(metadata["deletionTimestamp"]) - timedelta(seconds=current)
    moment = since + timedelta(seconds=asked)
    if moment < context.moment:
        # The time is already up. A graceful deletion still leaves the last step to the holder of the object.
        moment, asked = context.moment, min(asked, 1)
    _set_deletion(metadata, moment, asked)
    return asked


def _set_deletion(metadata: Object, moment: datetime, seconds: int) -> None:
    metadata["deletionTimestamp"] = timestamp(moment)
    metadata["deletionGracePeriodSeconds"] = seconds


def _mark(metadata: Object, context: Context) -> None:
    """Deleted, but waiting for finalizers. A deletion that was due later takes effect now."""
    if "deletionTimestamp" not in metadata and metadata.get("generation"):
        metadata["generation"] += 1
    existing = metadata.get("deletionTimestamp")
    if existing is None or moment_of(existing) > context.moment:
        metadata["deletionTimestamp"] = context.now
    metadata["deletionGracePeriodSeconds"] = 0


def _finalizers(existing: list[str], call: Call) -> list[str]:
    """The finalizers, with those of the garbage collector set as the options, the object and the kind require."""
    if call.resource.default_propagation == "Unsupported":
        return existing
    policy = _policy(existing, call.delete, call.resource.default_propagation)
    kept = [name for name in existing if name not in (ORPHAN, FOREGROUND)]
    wanted = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return kept + wanted


def _policy(existing: list[str], options: DeleteOptions, default: str) -> str:
    if options.orphan_dependents is not None:
        return "Orphan" if options.orphan_dependents else "Background"
    if options.propagation is not None:
        return options.propagation
    for name, policy in ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground")):
        if name in existing:
            return policy
    return default
