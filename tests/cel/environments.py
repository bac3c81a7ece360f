"""Environments and devices that the tests of the language share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drayman.api.codec import convert
from drayman.api.resource import Device
from drayman.cel import types
from drayman.cel.environment import Environment
from drayman.cel.functions import Library
from drayman.cel.libraries import kubernetes_libraries
from drayman.cel.standard import OPTIONALS, STANDARD_LIBRARY
from drayman.cel.standard_macros import BINDINGS, STANDARD, TWO_VARIABLES

LIMIT = 1_000_000

LANGUAGE = Environment(
    [*STANDARD_LIBRARY, OPTIONALS, Library("macros", macros=STANDARD + TWO_VARIABLES + BINDINGS)],
    variables={
        "x": types.DYN,
        "n": types.INT,
        "text": types.STRING,
        "m": types.map_of(types.STRING, types.INT),
    },
)


def evaluate(expression: str, **variables: object) -> object:
    """The value of an expression, or its error as text."""
    found = LANGUAGE.compile(expression).evaluate(variables, LIMIT).value
    return f"error: {found}" if isinstance(found, Exception) else found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    overload.id: overload.implementation
    for library in kubernetes_libraries()
    for function in library.functions
    for overload in function.overloads
}
"""What the functions of Kubernetes' libraries do, by the ids of their overloads."""


def device(**fields: object) -> Device:
    """`device(attributes={"model": {"string": "a100"}})`."""
    return convert(Device, {"name": "device-0", **fields})
