"""Deletion of namespaces, which takes two steps.

The first request only sets the phase to Terminating. The controller that removes the contents then takes its finalizer off the spec
through the finalize endpoint. When the last finalizer is gone, so is the namespace.
"""

from __future__ import annotations

from drayman.apiserver.protocol.errors import conflict
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import put
from drayman.apiserver.verbs.deleting import ORPHAN, admit_deletion, remove
from drayman.cluster.embedded.model import Stored


async def delete_namespace(call: Call) -> Result:
    """Begin to delete a namespace; delete it where nothing holds it any more."""
    existing = call.existing()
    _check_preconditions(call, existing)
    if "deletionTimestamp" not in existing.value["metadata"]:
        return Result(await _terminate(call, existing))
    if (existing.value.get("spec") or {}).get("finalizers"):
        return Result(existing)
    stored, _ = await remove(call, existing)
    return Result(stored)


def _check_preconditions(call: Call, existing: Stored) -> None:
    uid, version = existing.value["metadata"]["uid"], str(existing.revision)
    for what, wanted, found in (
        ("UID", call.delete.uid, uid),
        ("ResourceVersion", call.delete.resource_version, version),
    ):
        if wanted is not None and wanted != found:
            detail = f"{what} in precondition: {wanted}, {what} in object meta: {found}"
            raise conflict(call.subject, f"Precondition failed: {detail}")


async def _terminate(call: Call, existing: Stored) -> Stored:
    context, obj = call.context, decode(existing.data)
    admit_deletion(call, obj, context)
    _mark(call, obj, context.now)
    return await put(call, existing, stored_form(obj, call.resource.hub_kind))


def _mark(call: Call, obj: Object, now: str) -> None:
    metadata = obj["metadata"]
    metadata["deletionTimestamp"] = now
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    finalizers = [name for name in metadata.get("finalizers") or [] if name != ORPHAN]
    if call.delete.orphan_dependents or call.delete.propagation == "Orphan":
        finalizers.append(ORPHAN)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
