"""Conversion of stored objects, after their definition changed, to the form that would be stored now.

The real server does this whenever it reads an object. Here reads hand on stored bytes, so it is done once, as an update.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from drayman.apiserver.extensions.custom_form import as_stored
from drayman.apiserver.extensions.custom_strategy import CustomStrategy
from drayman.apiserver.protocol.limits import LARGE_WORK
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.served.encoding import decode, stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.cluster.breaks import Breaks
from drayman.cluster.embedded.errors import ConflictError
from drayman.cluster.embedded.model import Put, Stored

_AT_ONCE: Final = 20


async def migrate(core: Core, resource: ApiResource) -> None:
    """Rewrite the objects of a resource that are not in the form of its storage version.

    There may be very many, and large ones, so others are served in between. If the definition changes meanwhile, the rest is left to the
    migration that follows.
    """
    breaks = Breaks()
    stale: list[Put] = []
    for stored in core.store.list(resource.storage_name):
        if len(stored.data) > LARGE_WORK:
            operation = await beside(partial(_rewriting, stored, resource))
            breaks.begin()
        else:
            operation = _rewriting(stored, resource)
            await breaks.between()
        if (
            core.resources.find(resource.group, resource.versions[0], resource.plural)
            is not resource
        ):
            return
        if operation is not None:
            stale.append(operation)
        if len(stale) == _AT_ONCE or (stale and len(stored.data) > LARGE_WORK):
            await _write(core, stale)
            stale = []
    if stale:
        await _write(core, stale)


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
