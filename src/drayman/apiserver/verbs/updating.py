"""Replacement of objects: the common end of update, of every kind of patch, and of subresources that change their object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from drayman.api.validation.field_errors import invalid as invalid_field
from drayman.apiserver.protocol.errors import Subject, conflict, invalid, not_found
from drayman.apiserver.protocol.limits import within_size
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.served.conversion import to_hub
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.shaping import normalised
from drayman.apiserver.served.strategy import Context, Object
from drayman.apiserver.verbs import metadata as meta
from drayman.apiserver.verbs.admission import Admitted
from drayman.apiserver.verbs.creating import DUPLICATE_OWNERS, store_new
from drayman.apiserver.verbs.ownership import note_update, same_but_for_times
from drayman.apiserver.verbs.planning import ATTEMPTS, line_of, planned_beside, planned_here
from drayman.cluster.embedded.errors import ConflictError
from drayman.cluster.embedded.model import Delete, Operation, Put, Stored

Change = Callable[[Call, Object], Object]
"""From the object as it is, which may be changed, to what it should become; both in the hub version."""


async def update(call: Call) -> Result:
    """Replace an object by the body of a call, or create it where the resource allows that."""
    body: Object = dict(call.body or {})
    body["metadata"] = dict(body.get("metadata") or {})
    meta.check_name(call, body["metadata"])
    meta.check_namespace(call, body["metadata"])
    existing = call.core.store.latest(call.key)
    if existing is None:
        if not call.resource.creates_on_update or call.subresource is not None:
            raise not_found(call.subject)
        return Result(await store_new(call, body), status=201)
    check_uid(call, existing, body["metadata"].get("uid"))

    def change(there: Call, _: Object) -> Object:
        # A copy, as the change may be made again on another version of the object.
        obj = to_hub(there.resource, {**body, "metadata": dict(body["metadata"])}, there.version)
        there.resource.strategy.default(obj, there.context)
        return obj

    return Result(await replace(call, existing, change))


def check_uid(call: Call, existing: Stored, uid: str | None) -> None:
    """Refuse to replace a different object of the same name. Raises StatusError 409."""
    found = existing.value["metadata"]["uid"]
    if uid and uid != found:
        raise conflict(call.subject, precondition_text(call, "UID", uid, found))


def precondition_text(call: Call, what: str, wanted: str, found: str) -> str:
    """How the real server reports a precondition that its storage found violated."""
    path = "/".join(part for part in (call.resource.plural, call.namespace, call.name) if part)
    return (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    )


async def replace(call: Call, existing: Stored, change: Change, *, owns: bool = True) -> Stored:
    """Write the result of `change` for an object. Returns the existing object if nothing changes.

    `owns` says whether to record the change in managedFields, which apply does itself.
    """
    plan = partial(plan_replacement, change=change, owns=owns)
    here = planned_here(call, call.size + len(existing.data), partial(plan, existing=existing))
    if here is not None:
        return await _written(call, existing, *here)
    async with line_of(call):
        for attempt in range(1, ATTEMPTS + 1):
            existing = call.existing()
            size = call.size + len(existing.data)
            found = await planned_beside(call, size, partial(plan, existing=existing))
            try:
                return await _written(call, existing, *found)
            except ConflictError:
                # It was changed while this was planned.
                if attempt == ATTEMPTS:
                    raise
    raise AssertionError("the last attempt returns or raises")


async def _written(
    call: Call, existing: Stored, new: Object, operations: Sequence[Operation]
) -> Stored:
    """Carry out a plan. Raises ConflictError where the object is not as it was."""
    if not operations:
        return existing
    if not call.dry_run:
        results = await call.core.store.write(operations)
        if not isinstance(operations[0], Delete):
            return results[0]
        # The last finalizer is gone, and with it the object; the client gets it as it would have been.
    encode = stored_form(new, call.resource.hub_kind)
    return Stored(call.key, existing.revision, encode(existing.revision))


def plan_replacement(
    call: Call, existing: Stored, change: Change, *, owns: bool = True
) -> tuple[Object, list[Operation]]:
    """The object as it will be, and the operation that writes it; none if nothing changes."""
    context, old = call.context, decode(existing.data)
    new = change(call, decode(existing.data))
    if meta.without_duplicate_owners(new["metadata"]):
        call.warnings.append(DUPLICATE_OWNERS)
    if owns:
        new = normalised(call.resource, new)
        note_update(call, new, old, context)
    call.core.admission.admit(_admitted(call, new, old, context))
    if call.resource.guard is not None and call.subresource is None:
        call.resource.guard(call, new, old)
    _check_version(call, new, existing)
    new = _prepared(call, new, old, context)
    if same_but_for_times(new, old):
        return old, []
    encode = stored_form(new, call.resource.hub_kind)
    if _is_finished(new, old):
        return new, [Delete(call.key, encode, expected=existing.revision)]
    return new, [Put(call.key, within_size(encode, call.subject), expected=existing.revision)]


def _admitted(call: Call, new: Object, old: Object, context: Context) -> Admitted:
    part = call.subresource.name if call.subresource is not None else ""
    return Admitted(
        "UPDATE", call.resource, part, call.namespace, call.name, new=new, old=old, context=context
    )


def _check_version(call: Call, new: Object, existing: Stored) -> None:
    """Optimistic concurrency. Raises StatusError 409, or 422 if the kind must not be replaced without a version."""
    version = meta.version_of(new["metadata"])
    if version == 0 and call.resource.requires_version_on_update:
        error = invalid_field("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(Subject(call.resource.plural, call.resource.group, call.name), [error])
    if version not in (0, existing.revision):
        raise conflict(call.subject)
    new["metadata"]["resourceVersion"] = str(existing.revision)


def _prepared(call: Call, new: Object, old: Object, context: Context) -> Object:
    strategy, metadata = call.strategy, new["metadata"]
    metadata.pop("generation", None)
    if "generation" in old["metadata"]:
        metadata["generation"] = old["metadata"]["generation"]
    # These come before the strategy, as rules about deletion read them; whatever it restores is from the old object anyway.
    meta.keep_on_update(metadata, old["metadata"])
    strategy.prepare_for_update(new, old, context)
    new = normalised(call.resource, new)
    if call.resource.has_generation and strategy.generation_changes(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    errors = [
        *meta.common_update_errors(
            new["metadata"], old["metadata"], namespaced=call.resource.namespaced
        ),
        *strategy.validate_update(new, old, context),
    ]
    if errors:
        raise invalid(call.resource.kind_subject(call.name), errors)
    call.warnings.extend(strategy.warnings(new, old, context))
    call.core.admission.validate(_admitted(call, new, old, context))
    return new


def _is_finished(new: Object, old: Object) -> bool:
    """Whether an object that was waiting for its finalizers has none left."""
    before = old["metadata"]
    return (
        not new["metadata"].get("finalizers")
        and "deletionTimestamp" in before
        and not before.get("deletionGracePeriodSeconds")
        and not _holds_namespace(new)
    )


def _holds_namespace(new: Object) -> bool:
    """A namespace has finalizers in its spec too."""
    return new["kind"] == "Namespace" and bool((new.get("spec") or {}).get("finalizers"))
