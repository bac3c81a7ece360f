"""What a value was before: old and new value of the same field, if they can be matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drayman.api.struct import Json
from drayman.apiserver.extensions.list_types import map_key
from drayman.apiserver.extensions.schemas import LIST_KEYS, LIST_TYPE, Schema, items, member


@dataclass(frozen=True, slots=True)
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
    old = old_item(correlation.old, item, correlation.schema)
    return None if old is None else Correlation(item, old, inner)


def old_item(old: Json, item: Json, schema: Schema) -> Json:
    """The item of the old list that has the same key, None where there is none."""
    names: Sequence[str] = schema.get(LIST_KEYS) or ()
    if not isinstance(old, list) or not isinstance(item, dict) or not names:
        return None
    key = map_key(item, names)
    return next((o for o in old if isinstance(o, dict) and map_key(o, names) == key), None)
