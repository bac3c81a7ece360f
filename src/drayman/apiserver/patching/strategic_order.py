"""The order of a list that a strategic merge patch has changed.

Items that the patch names come in the patch's order, the others in their own. Between one of each, the one that came first in the
old list comes first; a new item comes before an old one.
"""

from __future__ import annotations

from collections.abc import Hashable

from drayman.api.struct import Json
from drayman.apiserver.patching.go_text import plain
from drayman.apiserver.protocol.errors import bad_request, internal


def arranged(
    merged: list[Json], patch_order: list[Json], old_order: list[Json], key: str | None
) -> list[Json]:
    """The merged items in order. Items are identified by `key`, or by their value without one."""
    wanted = _places(patch_order, key)
    before = _places(old_order, key)
    named = [item for item in merged if identity(item, key) in wanted]
    others = [item for item in merged if identity(item, key) not in wanted]
    named.sort(key=lambda item: wanted[identity(item, key)])
    others.sort(key=lambda item: before.get(identity(item, key), -1))
    return _interleaved(others, named, before, key)


def _places(items: list[Json], key: str | None) -> dict[Hashable, int]:
    """The first position of each item."""
    places: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        places.setdefault(identity(item, key), index)
    return places


def _interleaved(
    others: list[Json], named: list[Json], before: dict[Hashable, int], key: str | None
) -> list[Json]:
    result = []
    left = iter(others)
    waiting = next(left, None)
    for item in named:
        place = before.get(identity(item, key), -1)
        while waiting is not None and 0 <= before.get(identity(waiting, key), -1) < place:
            result.append(waiting)
            waiting = next(left, None)
        result.append(item)
    if waiting is not None:
        result += [waiting, *left]
    return result


def identity(item: Json, key: str | None = None) -> Hashable:
    """What identifies an item: the value of its `key`, or the item itself without one. Raises StatusError 500."""
    if key is not None:
        if not isinstance(item, dict) or key not in item:
            raise internal(f"map: {plain(item)} does not contain declared merge key: {key}")
        item = item[key]
    # Unhashable values are identified by their text, in a pair so that no string equals one.
    return (type(item).__name__, plain(item)) if isinstance(item, dict | list) else item


def check_order(patch: list[Json], order: list[Json], key: str | None) -> None:
    """Refuse a patch whose items do not all appear, in that order, in the order it gives."""
    if not order or not patch:
        return
    wanted = iter([identity(item, key) for item in order])
    for item in patch:
        if isinstance(item, dict) and "$patch" in item:
            continue
        sought = identity(item, key)
        if not any(sought == place for place in wanted):
            raise bad_request(
                f"The order in patch list:\n{plain(patch)}\n doesn't match "
                f"$setElementOrder list:\n{plain(order)}\n"
            )
