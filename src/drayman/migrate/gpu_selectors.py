"""The selectors of NVIDIA's driver for v1alpha2, as CEL.

Such a selector is one property, or an `andExpression` or `orExpression` of others. Names are compared as case-insensitive patterns; amounts
and versions have an operator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from drayman.api.struct import Json
from drayman.migrate.shapes import Object
from drayman.migrate.vendors import NVIDIA, attribute, capacity, quoted

Complain = Callable[[str, str], None]
"""Takes the path of what cannot be expressed in CEL, and why."""

_OPERATORS: Final = {
    "Equals": "==",
    "LessThan": "<",
    "LessThanOrEqualTo": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqualTo": ">=",
}
_PATTERNS: Final = ("productName", "brand", "architecture")
_VERSIONS: Final = ("cudaComputeCapability", "driverVersion", "cudaDriverVersion")
_JOINED: Final = {"andExpression": " && ", "orExpression": " || "}
_VERSION: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")


def selector_expression(selector: Object, path: str, complain: Complain) -> str:
    """The expression of a selector; empty where it selects everything, or where none of it can be expressed."""
    parts = [_part(name, item, f"{path}.{name}", complain) for name, item in selector.items()]
    return " && ".join(part for part in parts if part)


def _part(name: str, item: Json, path: str, complain: Complain) -> str:
    if name in _JOINED and isinstance(item, list):
        return _joined(name, item, path, complain)
    if name in _PATTERNS and isinstance(item, str):
        return _pattern(attribute(NVIDIA, name), item)
    if name in (*_VERSIONS, "memory") and isinstance(item, dict):
        return _comparison(name, item, path, complain)
    if name == "uuid" and isinstance(item, str):
        return f"{attribute(NVIDIA, 'uuid')} == {quoted(item)}"
    if name == "migEnabled" and item is False:
        return ""  # whole GPUs are what the class selects anyway
    if name == "migEnabled":
        complain(path, "a GPU in MIG mode offers its partitions only; ask for those instead")
    elif name == "index":
        complain(path, "the driver publishes no index; select by uuid or pciBusID")
    else:
        complain(path, "is not a property of GPUs that the driver knew")
    return ""


def _joined(name: str, items: list[Json], path: str, complain: Complain) -> str:
    parts = [
        selector_expression(item, f"{path}[{index}]", complain)
        for index, item in enumerate(items)
        if isinstance(item, dict)
    ]
    if name == "orExpression" and not all(parts):
        complain(path, "one of the alternatives cannot be expressed, so none of them restricts")
        return ""
    said = [part for part in parts if part]
    whole = _JOINED[name].join(said)
    return f"({whole})" if name == "orExpression" and len(said) > 1 else whole


def _pattern(value: str, pattern: str) -> str:
    if not set("*?[") & set(pattern):
        return f"{value}.lowerAscii() == {quoted(pattern.lower())}"
    regex = "".join({"*": ".*", "?": "."}.get(c) or re.escape(c) for c in pattern.lower())
    return f"{value}.lowerAscii().matches({quoted(f'^{regex}$')})"


def _comparison(name: str, item: Object, path: str, complain: Complain) -> str:
    operator = _OPERATORS.get(str(item.get("operator") or "Equals"))
    value = str(item.get("value"))
    if operator is None:
        complain(path, f"the operator {item.get('operator')} is unknown")
        return ""
    if name == "memory":
        return f"{capacity(NVIDIA, name)}.compareTo(quantity({quoted(value)})) {operator} 0"
    match = _VERSION.fullmatch(value)
    if match is None:
        complain(path, f"{value} is not a version")
        return ""
    version = ".".join(str(int(part or 0)) for part in match.groups())
    return f"{attribute(NVIDIA, name)}.compareTo(semver({quoted(version)})) {operator} 0"
