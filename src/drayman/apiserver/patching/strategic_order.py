"""The order of a list that a strategic merge patch has changed.

Items the patch names come in the patch's order, the others in theirs. Where one of each meet, the one that came first in the old
list comes first; a new item comes before an old one.
"""

from __future__ import annotations

from drayman.api.struct import Json
from drayman.apiserver.errors import StatusError, internal
from drayman.apiserver.patching.go_text import plain


def arranged(
    merged: list[Json], patch_order: list[Json], old_order: list[Json], key: str | None
) -> list[Json]:
    """The merged items in order. Items are told apart by `key`, or by their value without one."""
    wanted = [_identity(item, key) for item in patch_order]
    before = [_identity(item, key) for item in old_order]
    named = [item for item in merged if _identity(item, key) in wanted]
    others = [item for item in merged if _identity(item, key) not in wanted]
    named.sort(key=lambda item: wanted.index(_identity(item, key)))
    others.sort(key=lambda item: _position(before, _identity(item, key)))
    return _interleaved(others, named, before, key)


def _interleaved(
    others: list[Json], named: list[Json], before: list[Json], key: str | None
) -> list[Json]:
    result = []
    left = iter(others)
    waiting = next(left, None)
    for item in named:
        place = _position(before, _identity(item, key))
        while waiting is not None and 0 <= _position(before, _identity(waiting, key)) < place:
            result.append(waiting)
            waiting = next(left, None)
        result.append(item)
    if waiting is not None:
        result += [waiting, *left]
    return result


def _identity(item: Json, key: str | None) -> Json:
    if key is None:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _without_key(item, key)
    return item[key]


def _without_key(item: Json, key: str) -> StatusError:
    return internal(f"map: {plain(item)} does not contain declared merge key: {key}")


def _position(order: list[Json], identity: Json) -> int:
    return order.index(identity) if identity in order else -1


def check_order(patch: list[Json], order: list[Json], key: str | None) -> None:
    """Refuse a patch whose items do not all appear, in that order, in the order it gives."""
    if not order or not patch:
        return
    wanted = iter([_identity(item, key) for item in order])
    for item in patch:
        if isinstance(item, dict) and "$patch" in item:
            continue
        identity = _identity(item, key)
        if not any(identity == place for place in wanted):
            raise internal(
                f"The order in patch list:\n{plain(patch)}\n doesn't match "
                f"$setElementOrder list:\n{plain(order)}\n"
            )
