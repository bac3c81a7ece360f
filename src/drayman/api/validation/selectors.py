"""Device selectors and opaque configuration, which classes and claims share.

Compiling CEL is not this package's job: a checker is handed in and asked about each expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from drayman.api.formats import byte_length
from drayman.api.resource import (
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    DeviceSelector,
    OpaqueDeviceConfiguration,
)
from drayman.api.validation.alignment import check_parameters
from drayman.api.validation.containers import Errors, check_list
from drayman.api.validation.field_errors import ErrorKind, FieldError, required, too_long
from drayman.api.validation.names import driver_name, opaque_object

MAX_SELECTORS: Final = 32
MAX_CONFIGS: Final = 32
EXPRESSION_LENGTH: Final = 10 * 1024


class SelectorProblem(Protocol):
    """What is wrong with a CEL expression. The kind is one of `_KINDS`."""

    @property
    def kind(self) -> str: ...

    @property
    def detail(self) -> str: ...


SelectorChecker = Callable[[str, bool], SelectorProblem | None]
"""Given an expression and whether it is stored already (then newer rules do not apply), says what is wrong with it."""

_KINDS: Final = {
    "TooLong": ErrorKind.TOO_LONG,
    "Invalid": ErrorKind.INVALID,
    "Forbidden": ErrorKind.FORBIDDEN,
    "InternalError": ErrorKind.INTERNAL,
}


def check_selectors(
    selectors: tuple[DeviceSelector, ...],
    checker: SelectorChecker,
    path: str,
    *,
    stored: bool = False,
) -> Errors:
    def check(selector: DeviceSelector, path: str) -> Errors:
        if selector.cel is None:
            yield required(f"{path}.cel")
        else:
            yield from _expression(
                selector.cel.expression, checker, f"{path}.cel.expression", stored
            )

    yield from check_list(selectors, MAX_SELECTORS, check, path)


def _expression(expression: str, checker: SelectorChecker, path: str, stored: bool) -> Errors:
    if byte_length(expression) > EXPRESSION_LENGTH:
        yield too_long(path, EXPRESSION_LENGTH)
    elif problem := checker(expression, stored):
        yield FieldError(_KINDS[problem.kind], path, expression, problem.detail)


def check_opaque(
    opaque: OpaqueDeviceConfiguration | None, path: str, *, stored: bool = False
) -> Errors:
    if opaque is None:
        yield required(path)
        return
    yield from driver_name(opaque.driver, f"{path}.driver")
    yield from opaque_object(opaque.parameters, f"{path}.parameters", stored=stored)


def check_configuration(
    config: DeviceClassConfiguration | DeviceClaimConfiguration, path: str, *, stored: bool = False
) -> Errors:
    yield from check_opaque(config.opaque, f"{path}.opaque", stored=stored)
    if not stored:
        yield from check_parameters(config.opaque, f"{path}.opaque")
