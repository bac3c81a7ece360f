"""Single values of a body: which fit their type, what they become, and what is said about the others.

There are two ways to refuse a value. A mismatch of types is remembered and reading goes on, so that a later mistake of the other
sort can still come first; a value whose own type refuses it ends reading at once.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from drayman.api.errors import MalformedError, QuantityError
from drayman.api.quantity import Quantity
from drayman.api.schema.model import Scalar, ScalarKind
from drayman.api.schema.times import ZERO, TimeTextError, canonical_micro_time, canonical_time
from drayman.api.struct import Json
from drayman.api.syntax.values import Number, Pairs, number_value, plain, type_word

INTEGER_BITS: Final = {ScalarKind.INT32: 32, ScalarKind.INT64: 64}
ZEROS: Final[dict[ScalarKind, Json]] = {
    ScalarKind.STRING: "",
    ScalarKind.BOOL: False,
    ScalarKind.INT32: 0,
    ScalarKind.INT64: 0,
    ScalarKind.DOUBLE: 0,
    ScalarKind.INT_OR_STRING: 0,
    ScalarKind.QUANTITY: "0",
}
"""What an absent value counts as, and what stands in a list or a map where null was written; None for the other kinds."""
_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class TypeMismatch(Exception):
    """A value of the wrong type: what it is, and the type it should have been. Ends reading only if `is_final`."""

    def __init__(self, found: str, native: str, *, is_final: bool = False) -> None:
        super().__init__(found, native)
        self.found = found
        self.native = native
        self.is_final = is_final


class ScalarError(Exception):
    """A value that is wrong in itself; the text needs no context. Ends reading only if `is_final`."""

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


def read_scalar(type_: Scalar, value: Json) -> Json:
    """What a value that is not null becomes. Raises TypeMismatch, ScalarError."""
    match type_.kind:
        case ScalarKind.STRING:
            if isinstance(value, str) and not isinstance(value, Number):
                return value
        case ScalarKind.BOOL:
            if isinstance(value, bool):
                return value
        case ScalarKind.INT32 | ScalarKind.INT64:
            return _integer(value, type_.native, INTEGER_BITS[type_.kind])
        case ScalarKind.DOUBLE:
            return _double(value)
        case ScalarKind.BYTES:
            return _bytes(value, type_.native)
        case ScalarKind.QUANTITY:
            return _quantity(value)
        case ScalarKind.INT_OR_STRING:
            return _int_or_string(value)
        case ScalarKind.TIME | ScalarKind.MICRO_TIME:
            return _time(value, type_.kind)
        case _:
            return plain(value)
    raise TypeMismatch(type_word(value), type_.native)


def is_number(value: Json) -> bool:
    return isinstance(value, Number | int | float) and not isinstance(value, bool)


def _integer(value: Json, native: str, bits: int) -> int:
    if not is_number(value):
        raise TypeMismatch(type_word(value), native)
    text = str(value)
    if (
        set(text) & set(".eE")
        or len(text) > 20
        or not -(1 << bits - 1) <= int(text) < 1 << bits - 1
    ):
        raise TypeMismatch(f"number {text}", native)
    return int(text)


def _double(value: Json) -> float:
    if not is_number(value):
        raise TypeMismatch(type_word(value), "float64")
    try:
        return number_value(str(value))
    except MalformedError as error:
        raise TypeMismatch(f"number {value}", "float64") from error


def _bytes(value: Json, native: str) -> str:
    if isinstance(value, list) and not isinstance(value, Pairs):
        return base64.b64encode(bytes(_octet(item) for item in value)).decode()
    if not isinstance(value, str) or isinstance(value, Number):
        raise TypeMismatch(type_word(value), native)
    return canonical_base64(value)


def _octet(item: Json) -> int:
    if item is None:
        return 0
    value = _integer(item, "uint8", 64)
    if not 0 <= value <= 255:
        raise TypeMismatch(f"number {value}", "uint8")
    return value


def canonical_base64(text: str) -> str:
    """Base64 as it would be written again. Raises ScalarError, naming the first byte that is wrong."""
    compact = text.encode()
    if b"\n" in compact or b"\r" in compact:
        compact = compact.replace(b"\n", b"").replace(b"\r", b"")
    try:
        return base64.b64encode(base64.b64decode(compact, validate=True)).decode()
    except binascii.Error as error:
        place = _first_bad_byte(text.encode())
        message = f"illegal base64 data at input byte {place}"
        raise ScalarError(message, is_final=False) from error


def _first_bad_byte(data: bytes) -> int:
    """Where a decoder that works in groups of four gives up: at a strange byte, or at the start of an unfinished group."""
    group_start = 0
    in_group = 0
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte not in _ALPHABET:
            return _after_padding(data, position) if byte == ord("=") and in_group > 1 else position
        if in_group == 0:
            group_start = position
        in_group = (in_group + 1) % 4
    return group_start


def _after_padding(data: bytes, position: int) -> int:
    """Padding was allowed here; what follows it, or that nothing does, is the mistake."""
    rest = data[position:]
    padded = len(rest) - len(rest.lstrip(b"=\r\n"))
    return min(position + padded, len(data)) if padded < len(rest) else len(data)


def _quantity(value: Json) -> str:
    text = value.strip() if isinstance(value, str) else str(value) if is_number(value) else ""
    try:
        return str(Quantity.parse(text))
    except QuantityError as error:
        raise ScalarError(str(error), is_final=True) from error


def _int_or_string(value: Json) -> int | str:
    if isinstance(value, str) and not isinstance(value, Number):
        return value
    try:
        return _integer(value, "int32", 32)
    except TypeMismatch as mismatch:
        raise TypeMismatch(mismatch.found, mismatch.native, is_final=True) from mismatch


def _time(value: Json, kind: ScalarKind) -> str | None:
    """The time; None if it is the one that stands for none."""
    if not isinstance(value, str) or isinstance(value, Number):
        raise TypeMismatch(type_word(value), "string", is_final=True)
    try:
        text = canonical_time(value) if kind is ScalarKind.TIME else canonical_micro_time(value)
    except TimeTextError as error:
        raise ScalarError(str(error), is_final=True) from error
    return None if text.startswith(ZERO[:-1]) else text
