"""Rules that hold for lists and maps of anything: how many, how unique, which keys.

A list that is too long gives that one error and its items are not looked at, so that an absurd input costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from drayman.api.validation.field_errors import FieldError, duplicate, too_many

T = TypeVar("T")

Errors = Iterator[FieldError]

_SHORTEST_CUT: Final = 16
_ELLIPSIS: Final = "..."


def check_list(
    items: Sequence[T], limit: float, check: Callable[[T, str], Errors], path: str
) -> Errors:
    """Each item, unless there are more than `limit`."""
    if len(items) > limit:
        yield too_many(path, len(items), int(limit))
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")


def check_set(
    items: Sequence[T],
    limit: float,
    check: Callable[[T, str], Errors],
    key: Callable[[T], Hashable],
    path: str,
) -> Errors:
    """Each item as in a list, and no two with one key: the later one is at fault."""
    yield from check_list(items, limit, check, path)
    if len(items) <= limit:
        yield from check_unique(items, key, path)


def check_unique(items: Sequence[T], key: Callable[[T], Hashable], path: str) -> Errors:
    """No two items with one key."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        identity = key(item)
        if identity in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.add(identity)


def check_map(
    items: Mapping[str, T],
    check: Callable[[T, str], Errors],
    path: str,
    *,
    check_key: Callable[[str, str], Errors],
    longest_key: int,
    limit: int | None = None,
) -> Errors:
    """Each key, whose errors are the map's, and each value. Keys over `longest_key` are shortened in the path."""
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for key, item in items.items():
        yield from check_key(key, path)
        yield from check(item, f"{path}[{shortened(key, longest_key)}]")


def shortened(key: str, longest: int) -> str:
    """A key with its middle left out."""
    longest = max(longest, _SHORTEST_CUT)
    if len(key) <= longest:
        return key
    kept = longest - len(_ELLIPSIS)
    return key[: (kept + 1) // 2] + _ELLIPSIS + key[len(key) - kept // 2 :]


def nothing_to_check(_item: object, _path: str) -> Errors:
    """For values that are valid as soon as they decode."""
    return iter(())
