"""Decoding of a body exactly as the API server does it, for the bodies that are not plainly valid.

The value is in the form that `drayman.api.schema.decoding` documents. What is wrong with it is reported in the order and the words
of the API server: fields it does not know or finds twice are collected; the first value of a wrong type counts, unless a value
that its own type refuses comes anywhere after it. A field that occurs twice is decoded twice into the same place.
"""

from __future__ import annotations

from typing import Final

from drayman.api.errors import MalformedError
from drayman.api.schema.model import Field, ListOf, MapOf, Message, Scalar, ScalarKind, Type
from drayman.api.schema.scalars import ZEROS, ScalarError, TypeMismatch, read_scalar
from drayman.api.schema.tables import JSON_SCHEMA, message_named
from drayman.api.struct import Json
from drayman.api.syntax.json_scanner import quoted
from drayman.api.syntax.values import TOO_DEEP, Pairs, type_word

MAX_PROBLEMS: Final = 100
"""More unknown or duplicate fields than this are not reported."""

_ABSENT: Final = object()
_SCHEMA_KINDS: Final = frozenset(
    {ScalarKind.SCHEMA_OR_ARRAY, ScalarKind.SCHEMA_OR_BOOL, ScalarKind.SCHEMA_OR_STRINGS}
)


def decode_exactly(message: Message, tree: Json) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The value of a tree and the fields that are unknown or duplicate. Raises MalformedError."""
    decoder = _Decoder()
    value: dict[str, Json] = {}
    if isinstance(tree, Pairs | dict):
        try:
            decoder.message(message, tree, value)
        except RecursionError as error:  # schemas in schemas take six calls for each level
            raise MalformedError(TOO_DEEP) from error
    elif tree is not None:
        found = type_word(tree)
        raise MalformedError(
            f"json: cannot unmarshal {found} into Go value of type {message.native}"
        )
    if decoder.mismatch is not None:
        raise MalformedError(decoder.mismatch)
    return value, tuple(decoder.problems)


class _Decoder:
    """State of one decoding: where it is, and what was wrong so far."""

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}
        self.mismatch: str | None = None
        self._struct = ""
        self._names: list[str] = []
        self._path = ""
        self._lenient = 0

    def message(self, message: Message, tree: Json, into: dict[str, Json]) -> None:
        """Decodes an object into a dictionary, which may hold values from an earlier field of the same name."""
        seen: set[str] = set()
        outer = (self._struct, self._path)
        for name, value in _items(tree):
            field = message.fields.get(name)
            if field is None:
                self._problem("unknown field", name)
                continue
            if name in seen:
                self._problem("duplicate field", name)
            seen.add(name)
            context = (*embedding(message, name), name)
            self._struct = message.name
            self._names.extend(context)
            self._path = self._child(name)
            self._field(field, value, into)
            del self._names[-len(context) :]
            self._struct, self._path = outer

    def _field(self, field: Field, value: Json, into: dict[str, Json]) -> None:
        type_ = field.type
        if value is None:
            if field.pointer or _is_cleared_by_null(type_):
                into.pop(field.name, None)
            return
        decoded = self._value(type_, value, into.get(field.name))
        if decoded is _ABSENT:
            return
        if decoded is None or (not field.pointer and _is_zero(type_, decoded)):
            into.pop(field.name, None)
        else:
            into[field.name] = decoded

    def _value(self, type_: Type, value: Json, earlier: Json = None) -> Json:
        """What a value that is not null becomes; `_ABSENT` if it is of the wrong type."""
        try:
            if isinstance(type_, Scalar):
                return self._scalar(type_, value)
            if isinstance(type_, ListOf):
                return self._list(type_, value)
            if not isinstance(value, Pairs | dict):
                raise TypeMismatch(type_word(value), type_.native)
        except TypeMismatch as mismatch:
            self._mismatched(mismatch)
            return _ABSENT
        except ScalarError as refusal:
            self._refused(refusal)
            return _ABSENT
        result: dict[str, Json] = dict(earlier) if isinstance(earlier, dict) else {}
        if isinstance(type_, Message):
            self.message(type_, value, result)
        else:
            self._map(type_, value, result)
        return result

    def _scalar(self, type_: Scalar, value: Json) -> Json:
        if type_.kind not in _SCHEMA_KINDS:
            return read_scalar(type_, value)
        self._lenient += 1
        try:
            return self._schema(type_.kind, value)
        finally:
            self._lenient -= 1

    def _schema(self, kind: ScalarKind, value: Json) -> Json:
        """The places of a JSON schema that take a schema or something else. Unknown fields below go unnoticed."""
        schema = message_named(JSON_SCHEMA)
        if isinstance(value, Pairs | dict):
            return self._value(schema, value)
        if kind is ScalarKind.SCHEMA_OR_BOOL:
            if isinstance(value, bool):
                return value
            raise ScalarError("boolean or JSON schema expected", is_final=True)
        if isinstance(value, list):
            item: Type = schema
            if kind is ScalarKind.SCHEMA_OR_STRINGS:
                item = Scalar(ScalarKind.STRING, "string")
            return self._list(ListOf(item, f"[]{item.native}"), value) or None
        return None

    def _list(self, type_: ListOf, value: Json) -> Json:
        if not isinstance(value, list) or isinstance(value, Pairs):
            raise TypeMismatch(type_word(value), type_.native)
        outer = self._path
        items = []
        for position, item in enumerate(value):
            self._path = f"{outer}[{position}]"
            items.append(self._element(type_.item, item, nullable=type_.nullable))
        self._path = outer
        return items

    def _map(self, type_: MapOf, value: Json, into: dict[str, Json]) -> None:
        outer = self._path
        seen: set[str] = set()
        for key, item in _items(value):
            if key in seen:
                self._problem("duplicate field", key)
            seen.add(key)
            self._path = self._child(key)
            into[key] = self._element(type_.value, item)
            self._path = outer

    def _element(self, type_: Type, value: Json, *, nullable: bool = False) -> Json:
        """An item of a list or map, where null leaves a zero value."""
        if value is not None:
            decoded = self._value(type_, value)
            if decoded is not _ABSENT:
                return decoded
        if nullable:
            return None
        if isinstance(type_, Scalar):
            return "" if type_.kind is ScalarKind.BYTES else ZEROS.get(type_.kind)
        return {} if isinstance(type_, Message) else None

    def _child(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _problem(self, what: str, name: str) -> None:
        if not self._lenient and len(self.problems) < MAX_PROBLEMS:
            self.problems[f"{what} {quoted(self._child(name))}"] = None

    def _mismatched(self, mismatch: TypeMismatch) -> None:
        place = f"struct field {self._struct}.{'.'.join(self._names)}"
        text = f"json: cannot unmarshal {mismatch.found} into Go {place} of type {mismatch.native}"
        if mismatch.is_final:
            raise MalformedError(text)
        self.mismatch = self.mismatch or text

    def _refused(self, refusal: ScalarError) -> None:
        if refusal.is_final:
            raise MalformedError(str(refusal))
        self.mismatch = self.mismatch or str(refusal)


def embedding(message: Message, name: str) -> tuple[str, ...]:
    """The messages through which a field came into this one; error messages name them."""
    if message.is_kind and name in ("kind", "apiVersion"):
        return ("TypeMeta",)
    for source in message.inlined.values():
        if name in source.fields:
            return (source.name, *embedding(source, name))
    return ()


def _items(tree: Json) -> list[tuple[str, Json]]:
    return tree if isinstance(tree, Pairs) else list(tree.items())


def _is_cleared_by_null(type_: Type) -> bool:
    """Null empties lists, maps and what reads null itself; it leaves other values as they are."""
    if isinstance(type_, Message):
        return False
    return not isinstance(type_, Scalar) or type_.kind not in (
        ScalarKind.STRING,
        ScalarKind.BOOL,
        ScalarKind.INT32,
        ScalarKind.INT64,
        ScalarKind.DOUBLE,
    )


def _is_zero(type_: Type, value: Json) -> bool:
    """Whether a value that is not a pointer cannot be distinguished from an absent one."""
    if isinstance(type_, Message):
        return not value
    if isinstance(type_, Scalar) and type_.kind is not ScalarKind.QUANTITY:
        if type_.kind in _SCHEMA_KINDS or type_.kind in (ScalarKind.RAW_EXTENSION, ScalarKind.JSON):
            return False
        return value in ("", 0) and not (type_.kind is ScalarKind.INT_OR_STRING and value == "")
    return False
