"""Optional values. The interpreter runs `or`, `orValue` and indices itself; here they only have their signatures."""

from __future__ import annotations

from typing import NoReturn

from drayman.cel import types
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, member, static
from drayman.cel.standard_macros import OPTIONALS as MACROS
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BOOL, DYN, INT, STRING
from drayman.cel.values import (
    NONE,
    ListValue,
    MapValue,
    Opaque,
    OptionalValue,
    TypeValue,
    no_such_overload,
    type_name,
)

_K, _V = types.parameter("K"), types.parameter("V")
_LIST, _MAP = types.list_of(_V), types.map_of(_K, _V)
_OPTIONAL = types.optional_of(_V)
_OPTIONAL_LIST, _OPTIONAL_MAP = types.optional_of(_LIST), types.optional_of(_MAP)
_LIST_OF_OPTIONALS = types.list_of(_OPTIONAL)


def is_zero(value: object) -> bool:
    """Whether a value is the zero value of its type; values without one (such as types) never are."""
    if isinstance(value, Opaque):
        return value.is_zero
    if isinstance(value, Timestamp | Duration | MapValue):
        return value.is_zero
    return not isinstance(value, TypeValue | OptionalValue) and not value


def value_of(optional: OptionalValue) -> object:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _non_zero(value: object) -> OptionalValue:
    return NONE if is_zero(value) else OptionalValue(value)


def _first(values: ListValue) -> OptionalValue:
    return OptionalValue(values[0]) if len(values) else NONE


def _last(values: ListValue) -> OptionalValue:
    return OptionalValue(values[len(values) - 1]) if len(values) else NONE


def _unwrap(values: ListValue) -> list[object]:
    found: list[object] = []
    for value in values:
        if not isinstance(value, OptionalValue):
            raise EvaluationError(f"value of type {type_name(value)} is not optional")
        if value is not NONE:
            found.append(value.value)
    return found


def _only_interpreted(*args: object) -> NoReturn:
    raise no_such_overload()


OPTIONALS = Library(
    "optionals",
    (
        static("optional.of", "optional_of", (_V,), _OPTIONAL, OptionalValue),
        static("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, _non_zero),
        static("optional.none", "optional_none", (), _OPTIONAL, lambda: NONE),
        member("value", "optional_value", (_OPTIONAL,), _V, value_of),
        member("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda v: v is not NONE),
        member("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _only_interpreted),
        member("orValue", "optional_orValue_value", (_OPTIONAL, _V), _V, _only_interpreted),
        member("first", "list_first", (_LIST,), _OPTIONAL, _first),
        member("last", "list_last", (_LIST,), _OPTIONAL, _last),
        static("optional.unwrap", "optional_unwrap", (_LIST_OF_OPTIONALS,), _LIST, _unwrap),
        member("unwrapOpt", "optional_unwrapOpt", (_LIST_OF_OPTIONALS,), _LIST, _unwrap),
        *(
            static(operator, id, params, _OPTIONAL, _only_interpreted)
            for operator, id, params in (
                ("_?._", "select_optional_field", (DYN, STRING)),
                ("_[?_]", "list_optindex_optional_int", (_LIST, INT)),
                ("_[?_]", "optional_list_optindex_optional_int", (_OPTIONAL_LIST, INT)),
                ("_[?_]", "map_optindex_optional_value", (_MAP, _K)),
                ("_[?_]", "optional_map_optindex_optional_value", (_OPTIONAL_MAP, _K)),
                ("_[_]", "optional_list_index_int", (_OPTIONAL_LIST, INT)),
                ("_[_]", "optional_map_index_value", (_OPTIONAL_MAP, _K)),
            )
        ),
    ),
    types=(_OPTIONAL,),
    macros=MACROS,
)
