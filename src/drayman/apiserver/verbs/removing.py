"""The last change of an object and its deletion, in one write.

If nothing else keeps the object, its last form differs from the previous one only by what was removed. No one will ever read the
field owners of that form or validate it again, so neither is done: the object is removed in that form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from drayman.apiserver.protocol.options import DeleteOptions
from drayman.apiserver.requests.calls import Call, Result, success
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.deleting import admit_deletion, delete, is_removable
from drayman.apiserver.verbs.parts import meant_object, write_parts
from drayman.cluster.backend import PartsBody
from drayman.cluster.embedded.model import Delete, Stored
from drayman.cluster.writes import Parts

_HOLDERS: Final = ("metadata", "status")


async def remove_after(call: Call, body: PartsBody) -> Result:
    """Replace parts of the object of a call, and delete it."""
    existing = meant_object(call, body)
    last = _reduced(call, existing.value, body.parts)
    if last is not None and not call.dry_run and is_removable(call, last):
        await _remove(call, existing, last)
    else:
        await write_parts(call, body)
        if call.core.store.latest(call.key) is not None:
            options = DeleteOptions(uid=body.uid or None, dry_run=call.dry_run)
            return await delete(replace(call, verb="delete", subresource=None, delete=options))
    return success(replace(call.subject, uid=existing.value["metadata"]["uid"]))


def _reduced(call: Call, old: Object, parts: Parts) -> Object | None:
    """The object without some members of its metadata and status. None if a part is anything but such a member to remove."""
    if call.kind != call.resource.hub_kind or call.resource.codec is not None:
        return None
    last = dict(old)
    for path, value in parts.items():
        if value is not None or len(path) != 2 or path[0] not in _HOLDERS:
            return None
        holder, name = path
        last[holder] = {k: v for k, v in (last.get(holder) or {}).items() if k != name}
    return last


async def _remove(call: Call, existing: Stored, last: Object) -> None:
    admit_deletion(call, existing.value, call.context)
    encode = stored_form(last, call.resource.hub_kind)
    await call.core.store.write([Delete(call.key, encode, expected=existing.revision)])
