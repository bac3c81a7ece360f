"""Reading and changing decoded JSON whose shape has not been checked.

What has an unexpected type is treated as absent: the API server reports it better than a migration could.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drayman.api.struct import Json

Object = dict[str, Json]
Path = tuple[str, ...]


def group_and_version(value: Object) -> tuple[str, str]:
    """The API group, empty for the core one, and the version of an object."""
    group, slash, version = text(value, "apiVersion").partition("/")
    return (group, version) if slash else ("", group)


def child(value: Json, *path: str) -> Object:
    """The object at a path; empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text(value: Json, *path: str) -> str:
    """The text at a path; empty where there is none."""
    found = child(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def objects(value: Json, *path: str) -> list[Object]:
    """The objects in a list at a path."""
    return [item for _, item in numbered(value, *path)]


def numbered(value: Json, *path: str) -> Iterator[tuple[int, Object]]:
    """The objects in a list at a path, with their positions."""
    found = child(value, *path[:-1]).get(path[-1])
    if isinstance(found, list):
        yield from ((n, item) for n, item in enumerate(found) if isinstance(item, dict))


def changed(value: Object, path: Path, change: Callable[[Object], Object]) -> Object:
    """A copy in which the object at a path is replaced; unchanged where there is none."""
    if not path:
        return change(value)
    inner = value.get(path[0])
    return (
        {**value, path[0]: changed(inner, path[1:], change)} if isinstance(inner, dict) else value
    )


def changed_items(value: Object, key: str, change: Callable[[int, Object], Object]) -> Object:
    """A copy in which the objects of a list are replaced."""
    items = value.get(key)
    if not isinstance(items, list):
        return value
    new = [change(n, item) if isinstance(item, dict) else item for n, item in enumerate(items)]
    return {**value, key: new}


def without(value: Object, *keys: str) -> Object:
    """A copy without some fields."""
    return {key: item for key, item in value.items() if key not in keys}


def renamed(value: Object, key: str, new_key: str, item: Json) -> Object:
    """A copy in which a field is replaced by one with another name."""
    return {
        (new_key if name == key else name): (item if name == key else each)
        for name, each in value.items()
    }
