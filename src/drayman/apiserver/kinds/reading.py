"""Reading of decoded objects whose members may all be absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drayman.api.struct import Json


def at(value: Json, *path: str) -> Json:
    """The value at a path, or None where something on the way is missing."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_at(value: Json, *path: str) -> str:
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def text_reader(*path: str) -> Callable[[Json], str]:
    """A function that reads the text at a path, for field selectors."""
    return lambda value: text_at(value, *path)


def number_at(value: Json, *path: str) -> int:
    found = at(value, *path)
    return found if isinstance(found, int) else 0


def items_at(value: Json, *path: str) -> list[Json]:
    found = at(value, *path)
    return found if isinstance(found, list) else []


def map_at(value: Json, *path: str) -> dict[str, Json]:
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def member(value: dict[str, Json], name: str) -> dict[str, Json]:
    """The object under a name, made where there is none."""
    found = value.get(name)
    if not isinstance(found, dict):
        found = value[name] = {}
    return found


def each_at(value: Json, path: str, *names: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """The objects of a list with the path of each. `path` is the path of `value`; "" for an object as a whole."""
    prefix = ".".join(filter(None, (path, *names)))
    for index, item in enumerate(items_at(value, *names)):
        if isinstance(item, dict):
            yield f"{prefix}[{index}]", item


def set_default(value: dict[str, Json], name: str, default: Json) -> None:
    """Fill in a member that is absent, or empty as Go sees it. Not for members where zero is a choice."""
    if not value.get(name):
        value[name] = default
