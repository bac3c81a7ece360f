"""The table of prices that a scheduler and questions are given, as text.

    currency: USD
    instanceTypes:
      p5.48xlarge: 98.32
      p4d.24xlarge:
        on-demand: 32.77
        spot: 11.57

A single number is for every node of the type, however it is lent.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from drayman.api.codec import encode_json
from drayman.api.documents import text_of
from drayman.api.errors import DocumentError
from drayman.api.near_names import did_you_mean
from drayman.api.struct import Json
from drayman.api.syntax.yaml_builder import YamlDocument
from drayman.api.syntax.yaml_text import parse_yaml
from drayman.placement.prices import CapacityType, PriceTable, parse_price

_CURRENCY: Final = "currency"
_TYPES: Final = "instanceTypes"
_FIELDS: Final = (_CURRENCY, _TYPES)
_LONGEST_CURRENCY: Final = 8
_DIGITS: Final = 6
"""After the point: prices are kept in millionths."""


def read_price_table(file: str, data: bytes) -> PriceTable:
    """The table in a file of YAML or JSON. Raises DocumentError, which names the file and the line."""
    documents = list(parse_yaml(file, text_of(file, data), with_lines=True))
    if not documents:
        raise DocumentError(file, 0, f"is empty; prices are given under {_TYPES}")
    if len(documents) > 1:
        raise DocumentError(file, documents[1].line, "there is more than one document")
    return _Reader(file, documents[0]).table()


def written(table: PriceTable) -> str:
    """The table as text that `read_price_table` reads."""
    types = {
        name: {type_: f"{Decimal(price).scaleb(-_DIGITS):f}" for type_, price in prices.items()}
        for name, prices in table.types.items()
    }
    return encode_json({_CURRENCY: table.currency, _TYPES: types}).decode()


class _Reader:
    """Reads one document."""

    def __init__(self, file: str, document: YamlDocument) -> None:
        self._file = file
        self._document = document

    def table(self) -> PriceTable:
        found = self._mapping((), self._document.value, "the table")
        for name in found:
            if name not in _FIELDS:
                raise self._error((name,), f"{name} is unknown{did_you_mean(name, _FIELDS)}")
        types = self._mapping((_TYPES,), found.get(_TYPES), _TYPES)
        if not types:
            raise self._error((_TYPES,), f"{_TYPES} has no prices")
        return PriceTable(
            {name: self._prices(name, each) for name, each in types.items()},
            self._currency(found.get(_CURRENCY, "")),
        )

    def _currency(self, value: Json) -> str:
        if not isinstance(value, str) or len(value) > _LONGEST_CURRENCY or not value.isprintable():
            raise self._error((_CURRENCY,), f"{_CURRENCY} must be a short text such as USD")
        return value

    def _prices(self, name: str, value: Json) -> Mapping[CapacityType, int]:
        if not isinstance(value, dict):
            return dict.fromkeys(CapacityType, self._price((_TYPES, name), name, value))
        prices = {}
        for key, price in value.items():
            path = (_TYPES, name, key)
            if key not in {*CapacityType}:
                known = " or ".join(CapacityType)
                raise self._error(path, f"{name}: {key} is not a capacity type; use {known}")
            prices[CapacityType(key)] = self._price(path, f"{name}: {key}", price)
        return prices

    def _price(self, path: tuple[str, ...], what: str, value: Json) -> int:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        price = parse_price(str(value)) if is_number or isinstance(value, str) else None
        if price is None:
            raise self._error(
                path, f"{what}: {value!r} is not a price; write a number such as 32.77"
            )
        return price

    def _mapping(self, path: tuple[str, ...], value: Json, what: str) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise self._error(path, f"{what} must be a mapping")
        return value

    def _error(self, path: tuple[str, ...], message: str) -> DocumentError:
        return DocumentError(self._file, self._document.line_of(path), message)
