"""Creation of objects, also by update and by apply."""

from __future__ import annotations

from copy import deepcopy

from drayman.api.struct import Json
from drayman.apiserver.protocol.errors import already_exists, internal, invalid, no_free_name
from drayman.apiserver.protocol.limits import within_size
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.requests.rights import authorize
from drayman.apiserver.served.acting import warning
from drayman.apiserver.served.conversion import to_hub
from drayman.apiserver.served.encoding import encode, stored_form
from drayman.apiserver.served.shaping import finished
from drayman.apiserver.served.strategy import Context, Object
from drayman.apiserver.verbs import metadata as meta
from drayman.apiserver.verbs.admission import Admitted
from drayman.apiserver.verbs.ownership import note_creation
from drayman.apiserver.verbs.planning import planned
from drayman.cluster.embedded.model import Key, Put, Stored

DUPLICATE_OWNERS = (
    "metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests"
)


async def create(call: Call) -> Result:
    """Create the object of a call, or do what its resource does instead."""
    handler = call.resource.create_handler
    if handler is not None:
        answer = await handler(call)
        assert isinstance(answer, Result)
        return answer
    body: Object = dict(call.body or {})
    body["metadata"] = dict(body.get("metadata") or {})
    if body["metadata"].get("resourceVersion"):
        raise internal("resourceVersion should not be set on objects to be created")
    return Result(await store_new(call, body), status=201)


async def store_new(call: Call, body: Object, *, owns: bool = True) -> Stored:
    """Write an object that must not exist yet. `body` is in the version of the call; the callee owns it from here on.

    `owns` says whether to record its creator in managedFields, which apply does itself.
    """
    obj, operation = await planned(
        call, call.size, lambda there: plan_creation(there, _given(there, body), owns=owns)
    )
    if call.dry_run:
        return Stored(operation.key, 0, encode(obj))
    (stored,) = await call.core.store.write([operation])
    return stored


def _given(call: Call, body: Object) -> Object:
    """What a plan may change: a copy, where the plan may have to be made again."""
    return deepcopy(body) if call.strategy.has_costly_rules else body


def plan_creation(call: Call, body: Object, *, owns: bool = True) -> tuple[Object, Put]:
    """The object as it will be and the write that creates it. Raises StatusError if any rule is violated."""
    context = call.context
    meta.check_namespace(call, body["metadata"])
    meta.fill_for_create(body["metadata"], context)
    is_generated = meta.generate_name(body["metadata"], context, lambda name: _is_taken(call, name))
    if meta.without_duplicate_owners(body["metadata"]):
        call.warnings.append(DUPLICATE_OWNERS)
    obj = to_hub(call.resource, body, call.version)
    call.resource.strategy.default(obj, context)
    if owns:
        note_creation(call, obj, context)
    _admit(call, obj, context)
    if call.resource.guard is not None:
        call.resource.guard(call, obj, None)
    obj = _prepared(call, obj, context)
    key = Key(call.resource.storage_name, call.namespace, obj["metadata"]["name"])
    _refuse_existing(call, key, is_generated=is_generated)
    encode = within_size(stored_form(obj, call.resource.hub_kind), call.resource.subject(key.name))
    return obj, Put(key, encode, expected=0)


def _admit(call: Call, obj: Object, context: Context) -> None:
    call.core.admission.admit(_admitted(call, obj, context))


def _admitted(call: Call, obj: Object, context: Context) -> Admitted:
    name: Json = obj["metadata"].get("name", "")
    return Admitted(
        "CREATE", call.resource, "", call.namespace, name, new=obj, old=None, context=context
    )


def _prepared(call: Call, obj: Object, context: Context) -> Object:
    strategy, metadata = call.resource.strategy, obj["metadata"]
    if call.resource.has_generation:
        metadata["generation"] = 1
    strategy.prepare_for_create(obj, context)
    # Before it is put into stored form: that form omits empty lists, which may be invalid.
    errors = strategy.validate(obj, context) or meta.common_create_errors(
        metadata, strategy, namespaced=call.resource.namespaced
    )
    if errors:
        raise invalid(call.resource.kind_subject(metadata.get("name", "")), errors)
    obj = finished(call.resource, obj)
    call.warnings.extend(strategy.warnings(obj, None, context))
    effect = warning(
        call.resource.acting, call.resource.kind, metadata["name"], obj, call.core.running
    )
    if effect is not None:
        call.warnings.append(effect)
    if call.verb != "create":
        # An update or an apply that creates the object needs the right to create as well.
        authorize(call, "create")
    call.core.admission.validate(_admitted(call, obj, context))
    return obj


def _is_taken(call: Call, name: str) -> bool:
    key = Key(call.resource.storage_name, call.namespace, name)
    return call.core.store.latest(key) is not None


def _refuse_existing(call: Call, key: Key, *, is_generated: bool) -> None:
    existing = call.core.store.latest(key)
    if existing is None:
        return
    subject = call.resource.subject(key.name)
    if is_generated:
        raise no_free_name(subject)
    error = already_exists(subject)
    if "deletionTimestamp" in existing.value["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    raise error
