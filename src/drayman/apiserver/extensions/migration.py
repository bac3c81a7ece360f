"""Conversion of stored objects, after their definition changed, to the form that would be stored now.

The real server does this whenever it reads an object. Here reads hand on stored bytes, so it is done once, as an update.
"""

from __future__ import annotations

from typing import Final

from drayman.apiserver.extensions.custom_form import as_stored
from drayman.apiserver.extensions.custom_strategy import CustomStrategy
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.cluster.embedded.errors import ConflictError
from drayman.cluster.embedded.model import Put, Stored

_AT_ONCE: Final = 100


async def migrate(core: Core, resource: ApiResource) -> None:
    """Rewrite the objects of a resource that are not in the form of its storage version."""
    stale: list[Put] = []
    for stored in core.store.list(resource.storage_name):
        operation = _rewriting(stored, resource)
        if operation is not None:
            stale.append(operation)
    for start in range(0, len(stale), _AT_ONCE):
        await _write(core, stale[start : start + _AT_ONCE])


async def _write(core: Core, operations: list[Put]) -> None:
    try:
        await core.store.write(operations)
    except ConflictError:
        # Another client has written one of them, and so in the current form. The others are written one by one.
        if len(operations) > 1:
            for operation in operations:
                await _write(core, [operation])


def _rewriting(stored: Stored, resource: ApiResource) -> Put | None:
    obj: Object = decode(stored.data)
    before = decode(stored.data)
    obj["apiVersion"] = resource.hub_kind.api_version
    strategy = resource.strategy
    assert isinstance(strategy, CustomStrategy)
    as_stored(obj, strategy.versions[strategy.storage].schema)
    if obj == before:
        return None
    return Put(stored.key, stored_form(obj, resource.hub_kind), expected=stored.revision)
