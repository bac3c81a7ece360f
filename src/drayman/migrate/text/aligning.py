"""Which item of a list became which."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from drayman.api.struct import Json

Pair = tuple[int | None, int | None]
"""Positions in the old list and in the new one; None for an item that was added or removed."""


def align(old: Sequence[Json], new: Sequence[Json]) -> Iterator[Pair]:
    """Pairs of positions in the order of both lists."""
    matcher = SequenceMatcher(None, [*map(_identity, old)], [*map(_identity, new)], autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        both = min(old_end - old_start, new_end - new_start)
        yield from ((old_start + step, new_start + step) for step in range(both))
        yield from ((position, None) for position in range(old_start + both, old_end))
        yield from ((None, position) for position in range(new_start + both, new_end))


def _identity(item: Any) -> str:
    """What identifies an item: its name, the object it is, or all of it."""
    if isinstance(item, dict):
        metadata = item.get("metadata")
        if isinstance(metadata, dict):
            names = [item.get("kind"), metadata.get("namespace"), metadata.get("name")]
            return f"object {names}"
        if isinstance(item.get("name"), str):
            return f"name {item['name']}"
    return canonical(item)


def canonical(value: Json) -> str:
    """A text that is the same for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)
