"""JSON to typed objects and back.

Decoding goes straight from bytes to structs. Kubernetes is more tolerant than that (null means absent) and our errors must
name the exact field, so what the fast path rejects is decoded again using the type's shape, which either accepts it after
all or says what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Generic, TypeVar

import msgspec

from drayman.api.errors import DecodeError, QuantityError
from drayman.api.quantity import Quantity
from drayman.api.shape import fit, shape_of
from drayman.api.struct import ApiStruct, Json

T = TypeVar("T", bound=ApiStruct)


class ListMeta(ApiStruct):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class ObjectList(ApiStruct, Generic[T]):
    """What the API server answers to a list request."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] = ()


def decode(type_: type[T], data: bytes) -> T:
    """The object in a JSON text. Unknown fields are dropped; raises DecodeError."""
    decoder: msgspec.json.Decoder[T] = _decoder(type_)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return convert(type_, parse_json(data))
    except _SYNTAX_ERRORS as error:
        raise _syntax_error(error) from error


def decode_list(type_: type[T], data: bytes) -> ObjectList[T]:
    """The list in a JSON text, each item a `type_`. Raises DecodeError."""
    try:
        return _list_decoder(type_).decode(data)
    except msgspec.ValidationError:
        return _convert_list(type_, parse_json(data))
    except _SYNTAX_ERRORS as error:
        raise _syntax_error(error) from error


def convert(type_: type[T], value: Json) -> T:
    """The object a decoded JSON value describes. Unknown fields are dropped; raises DecodeError."""
    try:
        return msgspec.convert(value, type_, dec_hook=decode_extension)
    except msgspec.ValidationError:
        fitting = fit(shape_of(type_), value)
    try:
        return msgspec.convert(fitting, type_, dec_hook=decode_extension)
    except msgspec.ValidationError as error:
        raise _validation_error(error) from error


def encode(value: ApiStruct) -> bytes:
    """The JSON text of an object, with apiVersion and kind."""
    return _encoder.encode(value)


def to_dict(value: ApiStruct) -> dict[str, Json]:
    """The decoded JSON of an object, with apiVersion and kind."""
    decoded: dict[str, Json] = msgspec.json.decode(_encoder.encode(value))
    return decoded


def encode_json(value: Json) -> bytes:
    """The JSON text of a decoded JSON value, compact."""
    return _encoder.encode(value)


def parse_json(data: bytes) -> Json:
    """Any JSON value; raises DecodeError."""
    try:
        return msgspec.json.decode(data)
    except _SYNTAX_ERRORS as error:
        raise _syntax_error(error) from error


def decode_extension(type_: type, value: object) -> object:
    """msgspec's hook for the one type it does not know. As upstream, JSON numbers and surrounding spaces are accepted."""
    if type_ is not Quantity:
        raise NotImplementedError(f"cannot decode {type_}")
    if isinstance(value, str):
        return _parse_quantity(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Quantity.parse(repr(value))
    raise QuantityError(f"expected quantity, got {type(value).__name__}")


@lru_cache(maxsize=1 << 12)
def _parse_quantity(text: str) -> Quantity:
    """Lists of pods have tens of thousands of quantities, and few different ones."""
    return Quantity.parse(text.strip())


def encode_extension(value: object) -> object:
    """msgspec's hook for the one type it does not know."""
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"cannot encode {type(value)}")


_PLACE = re.compile(r"^(?P<message>.*) - at `\$\.?(?P<path>.*)`$", re.DOTALL)


_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def _validation_error(error: msgspec.ValidationError) -> DecodeError:
    """What a shape does not know, such as a field that is required."""
    place = _PLACE.match(str(error))
    path, message = (place["path"], place["message"]) if place else ("", str(error))
    if missing := _MISSING.fullmatch(message):
        path = f"{path}.{missing['name']}" if path else missing["name"]
        return DecodeError(path, "a value is required")
    return DecodeError(path, message)


_SYNTAX_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def _syntax_error(error: Exception) -> DecodeError:
    if isinstance(error, RecursionError):
        return DecodeError("", "the JSON text is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return DecodeError("", "the JSON text is not UTF-8")
    return DecodeError("", str(error))


_encoder = msgspec.json.Encoder(enc_hook=encode_extension)


@cache
def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_, dec_hook=decode_extension)


@cache
def _list_decoder(type_: type[T]) -> msgspec.json.Decoder[ObjectList[T]]:
    decoder: Callable[..., msgspec.json.Decoder[ObjectList[T]]] = msgspec.json.Decoder
    return decoder(ObjectList[type_], dec_hook=decode_extension)  # type: ignore[valid-type]


def _convert_list(type_: type[T], value: Json) -> ObjectList[T]:
    if not isinstance(value, dict) or not isinstance(value.get("items") or [], list):
        raise DecodeError("items", "expected array")
    items: list[T] = []
    for index, item in enumerate(value.get("items") or []):
        try:
            items.append(convert(type_, item))
        except DecodeError as error:
            raise error.under(f"items[{index}]") from error
    return ObjectList[T](
        api_version=value.get("apiVersion") or "",
        kind=value.get("kind") or "",
        metadata=convert(ListMeta, value.get("metadata") or {}),
        items=tuple(items),
    )
