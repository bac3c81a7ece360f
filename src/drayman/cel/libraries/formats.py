"""`format.dns1123Label().validate(text)` and the other named formats of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from drayman.api import formats
from drayman.cel.costs import (
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    CallEstimate,
    CostEstimate,
    CostNode,
    actual_size,
)
from drayman.cel.functions import Library, Rule, member, priced, static
from drayman.cel.libraries import names
from drayman.cel.libraries.rules import NOMINAL, matching_cost
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
    reasons: Callable[[str], formats.Problems]
    pattern_size: int

    def equals(self, other: object) -> bool:
        if not isinstance(other, FormatValue):
            raise no_such_overload()
        return self.name == other.name


def _prefix(check: Callable[[str], formats.Problems]) -> Callable[[str], formats.Problems]:
    return lambda text: check(names.as_prefix(text))


FORMATS = {
    format.name: format
    for format in (
        FormatValue("dns1123Label", formats.dns_label_problems, 30),
        FormatValue("dns1123Subdomain", formats.dns_subdomain_problems, 60),
        FormatValue("dns1035Label", names.dns1035_label, 30),
        FormatValue("qualifiedName", formats.label_key_problems, 60),
        FormatValue("dns1123LabelPrefix", _prefix(formats.dns_label_problems), 30),
        FormatValue("dns1123SubdomainPrefix", _prefix(formats.dns_subdomain_problems), 60),
        FormatValue("dns1035LabelPrefix", _prefix(names.dns1035_label), 30),
        FormatValue("labelValue", formats.label_value_problems, 40),
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


def _validate_estimate(args: Sequence[CostNode]) -> CallEstimate:
    each = _MAX_PATTERN * REGEX_LENGTH
    return CallEstimate(args[1].size.cost(STRING_TRAVERSAL).scaled(each))


def _validate_cost(args: Sequence[object], result: object) -> int:
    if not isinstance(args[0], FormatValue):
        return 1
    return matching_cost(actual_size(args[1]), args[0].pattern_size)


def _equality_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(CostEstimate(1, _MAX_NAME).scaled(STRING_TRAVERSAL))


_REASONS = optional_of(list_of(STRING))

NAMED_FORMATS = Library(
    "kubernetes.format",
    functions=(
        *priced(
            Rule(_validate_estimate, _validate_cost),
            member("validate", "format-validate", (FORMAT, STRING), _REASONS, validate),
        ),
        *priced(
            NOMINAL, static("format.named", "format-named", (STRING,), optional_of(FORMAT), named)
        ),
        *(
            static(f"format.{name}", f"format.{name}", (), FORMAT, partial(FORMATS.get, name))
            for name in FORMATS
        ),
    ),
    equality={FORMAT.name: _equality_estimate},
)
