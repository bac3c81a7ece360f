"""Device selectors: expressions over one device, in Kubernetes' environment for dynamic resource allocation."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from drayman.api.resource import Device
from drayman.bounded import Bounded
from drayman.cel.depth import room_for_recursion
from drayman.cel.device_types import DEVICE, Features, device_fields, input_size
from drayman.cel.device_values import device_value
from drayman.cel.environment import Environment, Evaluation, Program
from drayman.cel.errors import CompileError, EvaluationError
from drayman.cel.functions import Library
from drayman.cel.libraries import INCLUDES, kubernetes_libraries
from drayman.cel.projection import Key, key_of
from drayman.cel.reads import Reads, reads_of
from drayman.cel.standard import OPTIONALS, STANDARD_LIBRARY
from drayman.cel.standard_macros import BINDINGS, STANDARD, TWO_VARIABLES
from drayman.cel.types import ANY, BOOL, DYN, Type
from drayman.cel.values import OptionalValue, type_name

MAX_LENGTH = 10_240  # bytes
MAX_COST = 1_000_000  # both for the worst case that the API accepts and for one evaluation

_DEFAULT_FEATURES = Features()
_MACROS = Library("macros", macros=STANDARD + TWO_VARIABLES + BINDINGS)


@lru_cache(maxsize=8)
def environment(features: Features = _DEFAULT_FEATURES, *, stored: bool = True) -> Environment:
    """The environment of device selectors; `stored` for expressions that are already in the cluster."""
    libraries = [*STANDARD_LIBRARY, _MACROS, OPTIONALS, *kubernetes_libraries()]
    if stored or features.list_attributes:
        libraries.append(INCLUDES)
    return Environment(
        libraries,
        variables={"device": DEVICE},
        fields={DEVICE.name: device_fields(features, stored=stored)},
        input_sizes=input_size,
    )


def compile_selector(
    expression: str, *, features: Features = _DEFAULT_FEATURES, stored: bool = True
) -> Selector:
    """Raises CompileError, also for expressions that are too long or cannot give a bool."""
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        raise CompileError(f"must have at most {MAX_LENGTH} bytes", expression)
    program = environment(features, stored=stored).compile(expression)
    _check_output(program, features)
    return Selector(program, features)


def _check_output(program: Program, features: Features) -> None:
    accepted = {BOOL, ANY} | ({DYN} if features.list_attributes else set())
    if program.output_type not in accepted:
        text = f"must evaluate to {BOOL} or the unknown type, not {program.output_type}"
        raise CompileError(text, program.source)


class Selector:
    """A compiled device selector."""

    def __init__(self, program: Program, features: Features) -> None:
        self._program = program
        self._features = features

    @property
    def expression(self) -> str:
        return self._program.source

    @property
    def output_type(self) -> Type:
        return self._program.output_type

    @property
    def max_cost(self) -> int:
        """The worst case; the API refuses selectors above `MAX_COST`."""
        return self._program.max_cost

    @cached_property
    def reads(self) -> Reads:
        """Everything of a device that can influence the result."""
        with room_for_recursion():
            return reads_of(self._program.checked)

    @cached_property
    def key(self) -> Key:
        """A function of driver and device. Devices with equal keys get the same result, whether a verdict or an error."""
        return key_of(self.reads, self._features)

    def matches(self, driver: str, device: Device) -> bool:
        """Raises EvaluationError."""
        evaluation = self.evaluate(driver, device)
        if evaluation.error is not None:
            raise evaluation.error
        return evaluation.value is True

    def evaluate(self, driver: str, device: Device) -> Evaluation:
        """The verdict (a bool) or an error, with the actual cost."""
        try:
            value = device_value(driver, device, self._features)
        except EvaluationError as error:
            return Evaluation(error, 0)
        found = self._program.evaluate({"device": value}, MAX_COST)
        verdict = found.value
        while isinstance(verdict, OptionalValue):
            verdict = verdict.value
        if isinstance(verdict, bool):
            return Evaluation(verdict, found.cost)
        if found.error is None:
            text = f"CEL result of type {type_name(found.value)} could not be converted to bool"
            return Evaluation(EvaluationError(text), found.cost)
        return found


class ProblemKind(StrEnum):
    """Kubernetes' kinds of field errors, as far as selectors can cause them."""

    TOO_LONG = "TooLong"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    INTERNAL = "InternalError"


class SelectorProblem(Struct, frozen=True):
    kind: ProblemKind
    detail: str


_MOST_SOUND: Final = 1 << 16
_sound: Final[Bounded[tuple[bytes, bool, Features], bool]] = Bounded(_MOST_SOUND)
"""Digests of expressions that API validation accepts. Compiling one takes a hundred times as long as its digest, and claims
from one template repeat hundreds of them."""


def check_selector(
    expression: str, stored: bool, *, features: Features = _DEFAULT_FEATURES
) -> SelectorProblem | None:
    """Why API validation rejects an expression; None if it does not."""
    text = expression.encode("utf-8", "surrogatepass")
    known = (blake2b(text, digest_size=16).digest(), stored, features)
    if known in _sound:
        return None
    problem = _problem(expression, stored, features)
    if problem is None:
        _sound[known] = True
    return problem


def _problem(expression: str, stored: bool, features: Features) -> SelectorProblem | None:
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        return SelectorProblem(ProblemKind.TOO_LONG, f"may not be more than {MAX_LENGTH} bytes")
    try:
        selector = compile_selector(expression, features=features, stored=stored)
    except CompileError as error:
        if error.issues:
            return SelectorProblem(ProblemKind.INVALID, f"compilation failed: {error}")
        kind = ProblemKind.INTERNAL if error.is_internal else ProblemKind.INVALID
        return SelectorProblem(kind, str(error))
    if selector.max_cost > MAX_COST:
        return SelectorProblem(ProblemKind.FORBIDDEN, "too complex, exceeds cost limit")
    return None
