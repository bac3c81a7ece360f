"""`format.dns1123Label().validate(text)` and the other named formats of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from drayman.cel.costs import (
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    CallEstimate,
    CostEstimate,
    CostNode,
    actual_size,
)
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries import names
from drayman.cel.libraries.rules import matching_cost, nominal_cost, nominal_estimate
from drayman.cel.types import STRING, list_of, object_type, optional_of
from drayman.cel.values import NONE, Opaque, OptionalValue, no_such_overload

FORMAT = object_type("kubernetes.NamedFormat")

_MAX_PATTERN = 128
_MAX_NAME = 64


@dataclass(frozen=True, slots=True, eq=False)
class FormatValue(Opaque):
    """A named check. `pattern_size` is the length of the regular expression that upstream charges for it."""

    type_name: ClassVar[str] = FORMAT.name
    hashable: ClassVar[bool] = False

    name: str
    reasons: Callable[[str], list[str]]
    pattern_size: int

    def equals(self, other: object) -> bool:
        if not isinstance(other, FormatValue):
            raise no_such_overload()
        return self.name == other.name


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def reasons(text: str) -> list[str]:
        return check(names.as_prefix(text))

    return reasons


FORMATS = {
    format.name: format
    for format in (
        FormatValue("dns1123Label", names.dns1123_label, 30),
        FormatValue("dns1123Subdomain", names.dns1123_subdomain, 60),
        FormatValue("dns1035Label", names.dns1035_label, 30),
        FormatValue("qualifiedName", names.qualified_name, 60),
        FormatValue("dns1123LabelPrefix", _prefix(names.dns1123_label), 30),
        FormatValue("dns1123SubdomainPrefix", _prefix(names.dns1123_subdomain), 60),
        FormatValue("dns1035LabelPrefix", _prefix(names.dns1035_label), 30),
        FormatValue("labelValue", names.label_value, 40),
        FormatValue("uri", names.request_uri, 1103),
        FormatValue("uuid", names.uuid, 70),
        FormatValue("byte", names.base64, 84),
        FormatValue("date", names.date, 71),
        FormatValue("datetime", names.date_time, 71),
    )
}


def named(name: str) -> OptionalValue:
    format = FORMATS.get(name)
    return NONE if format is None else OptionalValue(format)


def validate(format: FormatValue, text: str) -> OptionalValue:
    """The reasons why the text does not have the format; none if it does."""
    reasons: list[object] = [*format.reasons(text)]
    return OptionalValue(reasons) if reasons else NONE


def _constant(name: str) -> FormatValue:
    return FORMATS[name]


def _validate_estimate(args: Sequence[CostNode]) -> CallEstimate:
    each = _MAX_PATTERN * REGEX_LENGTH
    return CallEstimate(args[1].size.cost(STRING_TRAVERSAL).scaled(each))


def _validate_cost(args: Sequence[object], result: object) -> int:
    if not isinstance(args[0], FormatValue):
        return 1
    return matching_cost(actual_size(args[1]), args[0].pattern_size)


def _equality_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(CostEstimate(1, _MAX_NAME).scaled(STRING_TRAVERSAL))


NAMED_FORMATS = Library(
    "kubernetes.format",
    functions=(
        Function(
            "validate",
            (
                Overload(
                    "format-validate",
                    (FORMAT, STRING),
                    optional_of(list_of(STRING)),
                    validate,
                    member=True,
                ),
            ),
            _validate_estimate,
            _validate_cost,
        ),
        Function(
            "format.named",
            (Overload("format-named", (STRING,), optional_of(FORMAT), named),),
            nominal_estimate,
            nominal_cost,
        ),
        *(
            Function(
                f"format.{name}",
                (Overload(f"format.{name}", (), FORMAT, partial(_constant, name)),),
            )
            for name in FORMATS
        ),
    ),
    equality={FORMAT.name: _equality_estimate},
)
