"""An environment: libraries, variables and limits; and the program that an expression compiles to in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.checker import check
from drayman.cel.declarations import Declarations, declare
from drayman.cel.depth import levels, room_for_recursion
from drayman.cel.errors import AbortError, CompileError, EvaluationError
from drayman.cel.estimate import InputSizes, estimate
from drayman.cel.functions import Library
from drayman.cel.parser import Syntax, parse
from drayman.cel.planner import Plan, plan
from drayman.cel.runtime import State
from drayman.cel.types import Type
from drayman.cel.validators import validate

_SHALLOW = 40  # levels that evaluate within the interpreter's default recursion limit


class Evaluation(Struct, frozen=True):
    """The result of one evaluation: a value, or an error in its place; and what it cost."""

    value: object
    cost: int

    @property
    def error(self) -> EvaluationError | None:
        return self.value if isinstance(self.value, EvaluationError) else None


class Environment:
    """Compiles expressions. Built once, then shared: building merges all libraries."""

    def __init__(
        self,
        libraries: Iterable[Library],
        *,
        variables: Mapping[str, Type] | None = None,
        fields: Mapping[str, Mapping[str, Type]] | None = None,
        input_sizes: InputSizes = lambda path: None,
        escaped_identifiers: bool = False,
    ) -> None:
        parts = tuple(libraries)
        macros = {(m.name, m.arity, m.member): m for part in parts for m in part.macros}
        self.declarations: Declarations = declare(parts, variables or {}, fields or {})
        self.input_sizes = input_sizes
        self.equality = {name: rule for part in parts for name, rule in part.equality.items()}
        self._syntax = Syntax(macros, escaped_identifiers=escaped_identifiers)
        self._validators = tuple(v for part in parts for v in part.validators)
        self._mixes_types = frozenset().union(*(part.mixes_types for part in parts))

    def check(self, source: str) -> ast.Checked:
        """The typed tree of an expression. Raises CompileError."""
        with room_for_recursion():
            checked = check(parse(source, self._syntax), self.declarations)
            issues = validate(checked, self._validators, self._mixes_types)
        if issues:
            raise CompileError.from_issues(source, issues)
        return checked

    def compile(self, source: str) -> Program:
        """Raises CompileError."""
        checked = self.check(source)
        with room_for_recursion():
            return Program(self, checked, plan(checked, self.declarations))


class Program:
    """An expression that is ready to run. The interpreter behind it gives exact values, errors and costs."""

    def __init__(self, environment: Environment, checked: ast.Checked, steps: Plan) -> None:
        self.checked = checked
        self._environment = environment
        self._plan = steps
        self._deep = levels(checked.expr) > _SHALLOW

    @property
    def source(self) -> str:
        return self.checked.source

    @property
    def output_type(self) -> Type:
        return self.checked.output_type

    @cached_property
    def max_cost(self) -> int:
        """The worst case, at most 2**64 - 1."""
        environment = self._environment
        with room_for_recursion():
            found = estimate(
                self.checked,
                environment.declarations,
                environment.equality,
                environment.input_sizes,
            )
        return found.max

    def evaluate(self, variables: Mapping[str, object], limit: int) -> Evaluation:
        state = State(variables, self._plan.slots, limit)
        try:
            if self._deep:
                with room_for_recursion():
                    value = self._plan.step(state)
            else:
                value = self._plan.step(state)
        except AbortError as error:
            value = error
        return Evaluation(value, state.cost)
