"""Sets of fields, as `metadata.managedFields` records them.

A path is a sequence of elements, each kept in the form that FieldsV1 uses: `f:name` is a field, `k:{"name":"a"}` an item of a
list by its keys, `v:"x"` an item of a set, `i:0` one by position. Keeping that text in one canonical spelling makes comparing
elements a string comparison, and encoding nearly free.

A node of the tree says which elements are members and which have members below them; an element may be both. A field that is a
member is owned as such (`.` in FieldsV1), which owning what is below it does not imply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from drayman.api.struct import Json
from drayman.api.syntax.values import MAX_DEPTH, TOO_DEEP, depth_exceeds

Path = tuple[str, ...]
_SELF: Final = "."
_POSITION: Final = re.compile(r"[0-9]{1,18}")
_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_TYPE_RANKS: Final = {float: 0, int: 0, str: 1, bool: 2, list: 3, dict: 4, type(None): 5}


class FieldSetError(ValueError):
    """A text that does not describe a set of fields."""


class FieldSet:
    """An immutable set of paths. The empty path is never a member: no manager owns an object as a whole."""

    __slots__ = ("children", "members")

    def __init__(
        self, members: frozenset[str] = frozenset(), children: Mapping[str, FieldSet] | None = None
    ) -> None:
        self.members: Final = members
        self.children: Final[Mapping[str, FieldSet]] = children or {}
        """What is below an element; never an empty set."""

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FieldSet)
            and self.members == other.members
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.members, frozenset(self.children.items())))

    def __repr__(self) -> str:
        return f"FieldSet({encode(self)!r})"

    def __or__(self, other: FieldSet) -> FieldSet:
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        for element, below in other.children.items():
            own = children.get(element)
            children[element] = below if own is None else own | below
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        children = {
            element: common
            for element, below in self.children.items()
            if element in other.children and (common := below & other.children[element])
        }
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """The paths that are not in the other set. A member there does not remove what is below it here."""
        if not other:
            return self
        children = {}
        for element, below in self.children.items():
            taken = other.children.get(element)
            left = below if taken is None else below - taken
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)

    def without_trees(self, other: FieldSet) -> FieldSet:
        """The paths that neither are in the other set nor lie below a member of it."""
        if not other:
            return self
        children = {}
        for element, below in self.children.items():
            if element in other.members:
                continue
            taken = other.children.get(element)
            left = below if taken is None else below.without_trees(taken)
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)

    def below(self, element: str) -> FieldSet:
        """The part of the set under an element, without that element."""
        return self.children.get(element, EMPTY)

    def has(self, path: Path) -> bool:
        node = self
        for element in path[:-1]:
            node = node.below(element)
        return bool(path) and path[-1] in node.members

    def paths(self) -> Iterator[Path]:
        """Every path, in order: at each level first the members, then what is below."""
        for element in sorted(self.members, key=element_order):
            yield (element,)
        for element in sorted(self.children, key=element_order):
            for path in self.children[element].paths():
                yield (element, *path)


EMPTY: Final = FieldSet()


def union(sets: Sequence[FieldSet]) -> FieldSet:
    """Everything in any of the sets. Halves are put together, so that what is in the first is not copied once for each of the others."""
    if len(sets) < 2:
        return sets[0] if sets else EMPTY
    half = len(sets) // 2
    return union(sets[:half]) | union(sets[half:])


class FieldSetBuilder:
    """Builds a set step by step."""

    __slots__ = ("_children", "_members")

    def __init__(self) -> None:
        self._members: set[str] = set()
        self._children: dict[str, FieldSetBuilder] = {}

    def add(self, path: Path) -> None:
        if not path:
            return
        node = self
        for element in path[:-1]:
            found = node._children.get(element)
            if found is None:
                found = node._children[element] = FieldSetBuilder()
            node = found
        node._members.add(path[-1])

    def build(self) -> FieldSet:
        children = {element: node.build() for element, node in self._children.items()}
        return FieldSet(frozenset(self._members), children)


def field_set(paths: Iterable[Path]) -> FieldSet:
    """The set of some paths."""
    builder = FieldSetBuilder()
    for path in paths:
        builder.add(path)
    return builder.build()


def named_path(*names: str) -> Path:
    """A path of field names."""
    return tuple(f"f:{name}" for name in names)


def key_element(keys: Mapping[str, Json]) -> str:
    """The element of a list item that is identified by the values of some fields."""
    return f"k:{_compact(dict(sorted(keys.items())))}"


def value_element(value: Json) -> str:
    """The element of an item of a set."""
    return f"v:{_compact(value)}"


def _compact(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def encode(fields: FieldSet) -> dict[str, Json]:
    """FieldsV1 of a set, in canonical order."""
    result: dict[str, Json] = {}
    for element in _ordered(fields.members | fields.children.keys()):
        below = fields.children.get(element)
        inner = {} if below is None else encode(below)
        result[element] = {_SELF: {}, **inner} if inner and element in fields.members else inner
    return result


def _ordered(elements: Set[str]) -> Iterable[str]:
    # Field names sort as plain strings, and most levels have nothing else.
    if all(element[0] == "f" for element in elements):
        return sorted(elements)
    return sorted(elements, key=element_order) if len(elements) > 1 else elements


def decode(fields: Json) -> FieldSet:
    """The set FieldsV1 describes. Elements of an unknown type are omitted, since a newer version may know them."""
    if not isinstance(fields, dict):
        raise FieldSetError(f"expected an object of fields, got {fields!r}")
    members: set[str] = set()
    children: dict[str, FieldSet] = {}
    for text, inner in fields.items():
        if text == _SELF:
            continue
        element = _canonical(text)
        if element is None:
            continue
        below = decode(inner)
        if below:
            children[element] = below
        if not below or _SELF in inner:
            members.add(element)
    return FieldSet(frozenset(members), children)


def _canonical(text: str) -> str | None:
    """An element in the one spelling used here; None for an unknown type of element."""
    if len(text) < 2 or text[1] != ":":
        raise FieldSetError(f"{text!r} is not a path element")
    if text[0] == "f":
        return text
    if text[0] == "i":
        if not _POSITION.fullmatch(text[2:]):
            raise FieldSetError(f"{text!r} is not a path element: its position is not a number")
        return text
    if text[0] not in "kv":
        return None
    try:
        value = msgspec.json.decode(text[2:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise FieldSetError(f"{text!r} is not a path element: {error}") from error
    if depth_exceeds(value, MAX_DEPTH):
        raise FieldSetError(f"{text!r} is not a path element: {TOO_DEEP}")
    if text[0] == "v":
        return value_element(value)
    if not isinstance(value, dict):
        raise FieldSetError(f"{text!r} is not a path element: its keys are not an object")
    return key_element(value)


def element_order(element: str) -> tuple[int, Json]:
    """The sort key of path elements: fields by name, list items by keys, set items by value, positions."""
    sort, content = element[0], element[2:]
    rank = _RANKS[sort]
    if sort == "f":
        return rank, content
    if sort == "i":
        return rank, int(content)
    value = msgspec.json.decode(content)
    if sort == "v":
        return rank, _value_order(value)
    return rank, [(name, _value_order(member)) for name, member in value.items()]


def _value_order(value: Json) -> tuple[int, Json]:
    rank = _TYPE_RANKS[type(value)]
    return rank, value if rank < 3 else _compact(value)


def path_text(path: Path) -> str:
    """A path as people read it: `.spec.containers[name="c"].image`."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    sort, content = element[0], element[2:]
    if sort == "f":
        return f".{content}"
    if sort == "i":
        return f"[{content}]"
    value = msgspec.json.decode(content)
    if sort == "v":
        return f"[={_scalar_text(value)}]"
    return f"[{','.join(f'{name}={_scalar_text(member)}' for name, member in value.items())}]"


def _scalar_text(value: Json) -> str:
    return msgspec.json.encode(value).decode()
