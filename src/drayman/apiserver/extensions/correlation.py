"""What a value was before: old and new value of the same field, if they can be matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from drayman.api.struct import Json
from drayman.apiserver.extensions.list_types import map_key
from drayman.apiserver.extensions.schemas import LIST_KEYS, LIST_TYPE, Schema, items, member
from drayman.apiserver.served.encoding import encode


@dataclass(frozen=True)
class Correlation:
    """The old and new value of a field that both objects have."""

    new: Json
    old: Json
    schema: Schema

    @property
    def unchanged(self) -> bool:
        """Whether nothing changed. Lists that are maps may be in another order."""
        if isinstance(self.new, list) and isinstance(self.old, list) and self._is_map:
            if len(self.new) != len(self.old):
                return False
            found = (position_of(self, position) for position in range(len(self.new)))
            return all(one is not None and one.unchanged for one in found)
        if isinstance(self.new, dict) and isinstance(self.old, dict):
            if self.new == self.old:
                return True
            return self.new.keys() == self.old.keys() and all(map(self._same_member, self.new))
        return self.new == self.old and isinstance(self.new, bool) == isinstance(self.old, bool)

    @cached_property
    def old_items(self) -> OldItems:
        return OldItems(self.old, self.schema)

    @property
    def _is_map(self) -> bool:
        return self.schema.get(LIST_TYPE) == "map"

    def _same_member(self, name: str) -> bool:
        found = key_of(self, name)
        return found is not None and found.unchanged


def key_of(correlation: Correlation | None, name: str) -> Correlation | None:
    """The correlation of a member; None where the old object has none, or the schema does not know it."""
    if correlation is None:
        return None
    new, old = correlation.new, correlation.old
    if not isinstance(new, dict) or not isinstance(old, dict) or name not in old or name not in new:
        return None
    inner = member(correlation.schema, name)
    return None if inner is None else Correlation(new[name], old[name], inner)


def position_of(correlation: Correlation | None, position: int) -> Correlation | None:
    """The correlation of an item of a list. Items can only be matched in lists that are maps."""
    if correlation is None or correlation.schema.get(LIST_TYPE) != "map":
        return None
    inner = items(correlation.schema)
    if inner is None or not isinstance(correlation.new, list):
        return None
    item = correlation.new[position]
    old = correlation.old_items.like(item)
    return None if old is None else Correlation(item, old, inner)


class OldItems:
    """The items of an old list by their keys, of several with one key the first."""

    __slots__ = ("_by_key", "_names")

    def __init__(self, old: Json, schema: Schema) -> None:
        self._names: Sequence[str] = schema.get(LIST_KEYS) or ()
        self._by_key: dict[bytes, Json] = {}
        if isinstance(old, list) and self._names:
            for item in old:
                if isinstance(item, dict):
                    self._by_key.setdefault(encode(map_key(item, self._names)), item)

    def like(self, item: Json) -> Json:
        """The old item that has the same key, None where there is none."""
        if not self._by_key or not isinstance(item, dict):
            return None
        return self._by_key.get(encode(map_key(item, self._names)))
