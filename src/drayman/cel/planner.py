"""A checked tree to steps: the interpreter.

The plan follows the reference implementation's, because costs are defined by it: constant lists, maps and conversions are folded (a
conversion that fails is a compile error, not an evaluation error), `x in [constants]` is a set lookup, selections and indices are gathered
into paths, and constant patterns are compiled.
"""

from __future__ import annotations

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.attributes import Attribute, Conditional, Path, Qualifier
from drayman.cel.calls import call_step, equality_step, membership_step
from drayman.cel.construction import list_step, map_step, message_step
from drayman.cel.declarations import Declarations
from drayman.cel.dispatch import dispatcher
from drayman.cel.errors import CompileError, EvaluationError
from drayman.cel.folds import Fold, fold_step, local_step
from drayman.cel.regex import compile_pattern
from drayman.cel.runtime import State, Step
from drayman.cel.standard.collections import check_key
from drayman.cel.types import TypeKind
from drayman.cel.values import LISTS, NONE, MapValue, OptionalValue, no_such_overload

_CONVERSIONS = frozenset(
    ["bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint"]
)


class Plan(Struct, frozen=True):
    step: Step
    slots: int  # how many local variables there are


class _Constant(Struct, frozen=True):
    value: object

    def step(self, state: State) -> object:
        return self.value


class _Computed(Struct, frozen=True):
    step: Step


_Planned = _Constant | _Computed | Path | Conditional


def plan(checked: ast.Checked, declarations: Declarations) -> Plan:
    """Raises CompileError where a constant part of the expression fails. Needs `room_for_recursion`."""
    planner = _Planner(checked, declarations)
    try:
        planned = planner.plan(checked.expr)
    except EvaluationError as error:
        message = f"program instantiation failed: {error}"
        raise CompileError(message, checked.source, is_internal=True) from None
    return Plan(planned.step, planner.slots)


class _Planner:
    def __init__(self, checked: ast.Checked, declarations: Declarations) -> None:
        self.slots = 0
        self._checked = checked
        self._declarations = declarations
        self._locals: list[tuple[str, Step, int | None]] = []  # with the slot of plain variables

    def plan(self, expr: ast.Expr) -> _Planned:
        match expr:
            case ast.Literal():
                return _Constant(expr.value)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                return self._call(expr)
            case ast.ListExpr():
                return self._list(expr)
            case ast.MapExpr():
                return self._map(expr)
            case ast.Comprehension():
                return self._comprehension(expr)
            case ast.StructExpr():
                return self._struct(expr)

    def _ident(self, expr: ast.Ident) -> _Planned:
        reference = self._checked.references.get(expr.id)
        if reference is not None and reference.value is not None:
            return _Constant(reference.value)
        type_ = self._checked.types.get(expr.id)
        if type_ is not None and type_.kind is TypeKind.TYPE:
            # Upstream treats every identifier of this type as the name of a type, even if it is a variable.
            raise EvaluationError(f"reference to undefined type: {expr.name}")
        for name, read, local in reversed(self._locals):
            if name == expr.name:
                return Path(read, local=local)
        return Path(_variable(expr.name))

    # --- paths ---

    def _path(self, operand: ast.Expr) -> Attribute:
        return _as_attribute(self.plan(operand))

    def _select(self, expr: ast.Select) -> _Planned:
        path = self._path(expr.operand)
        path.add(Qualifier(expr.field, test_only=expr.test_only))
        return path  # type: ignore[return-value]

    def _index(self, operand: ast.Expr, key: ast.Expr, *, optional: bool) -> _Planned:
        path = self._path(operand)
        planned = self.plan(key)
        if isinstance(planned, _Constant):
            check_key(planned.value)
            path.add(Qualifier(planned.value, optional=optional))
        elif isinstance(planned, _Computed):
            path.add(Qualifier(key_of=planned.step, optional=optional))
        else:
            path.add(Qualifier(key_of=planned.resolve, optional=optional))
        return path  # type: ignore[return-value]

    # --- calls ---

    def _call(self, expr: ast.Call) -> _Planned:
        match expr.function:
            case "_[_]":
                return self._index(*expr.args, optional=False)
            case "_[?_]" | "_?._":
                return self._index(*expr.args, optional=True)
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        args = [self.plan(operand) for operand in operands]
        steps = [arg.step for arg in args]
        match expr.function:
            case "_&&_":
                return _Computed(_logical(steps, absorbing=False))
            case "_||_":
                return _Computed(_logical(steps, absorbing=True))
            case "_?_:_":
                return Conditional(steps[0], _as_attribute(args[1]), _as_attribute(args[2]))
            case "or" | "orValue" if len(args) == 2:
                return _Computed(
                    _optional_or(steps[0], steps[1], unwrap=expr.function == "orValue")
                )
            case "_==_" | "_!=_":
                overload = self._declarations.functions[expr.function].overloads[0]
                return _Computed(equality_step(overload, steps[0], steps[1]))
        return self._function(expr, args)

    def _function(self, expr: ast.Call, args: list[_Planned]) -> _Planned:
        function = self._declarations.functions[expr.function]
        ids = self._checked.references[expr.id].overloads
        overload = self._declarations.overloads[ids[0]] if len(ids) == 1 else None
        constants = [arg.value for arg in args if isinstance(arg, _Constant)]
        if function.name in _CONVERSIONS and len(constants) == len(args) == 1:
            return _Constant(dispatcher(function, overload)(constants))
        if overload is not None and overload.id == "in_list" and isinstance(args[1], _Constant):
            values = args[1].value
            if isinstance(values, LISTS) and len(values) == 0:
                return _Constant(False)
            if (step := membership_step(args[0].step, values)) is not None:
                return _Computed(step)
        has_pattern = self._check_pattern(function.overloads[0].pattern, args)
        steps = [arg.step for arg in args]
        return _Computed(call_step(function, overload, steps, stops_early=has_pattern))

    def _check_pattern(self, index: int | None, args: list[_Planned]) -> bool:
        """Compiles a constant pattern, so that a bad one is noticed now. Raises EvaluationError."""
        if index is None or index >= len(args):
            return False
        argument = args[index]
        if not isinstance(argument, _Constant) or not isinstance(argument.value, str):
            return False
        compile_pattern(argument.value)
        return True

    # --- lists and maps ---

    def _list(self, expr: ast.ListExpr) -> _Planned:
        planned = [self.plan(element) for element in expr.elements]
        if not expr.optional and all(isinstance(element, _Constant) for element in planned):
            return _Constant(
                [element.value for element in planned if isinstance(element, _Constant)]
            )
        return _Computed(list_step([element.step for element in planned], expr.optional))

    def _map(self, expr: ast.MapExpr) -> _Planned:
        keys = [self.plan(entry.key) for entry in expr.entries]
        values = [self.plan(entry.value) for entry in expr.entries]
        optional = [entry.optional for entry in expr.entries]
        if not any(optional) and all(isinstance(part, _Constant) for part in (*keys, *values)):
            pairs = zip(keys, values, strict=True)
            return _Constant(MapValue.of((key.value, value.value) for key, value in pairs))  # type: ignore[union-attr]
        steps = [(k.step, v.step, o) for k, v, o in zip(keys, values, optional, strict=True)]
        return _Computed(map_step(steps))

    def _struct(self, expr: ast.StructExpr) -> _Planned:
        message = self._declarations.messages[expr.type_name]
        fields = [(f.name, self.plan(f.value).step, f.optional) for f in expr.fields]
        return _Computed(message_step(message, fields))

    # --- comprehensions ---

    def _comprehension(self, expr: ast.Comprehension) -> _Planned:
        init = self.plan(expr.accu_init).step
        iter_range = self.plan(expr.iter_range).step
        first, second, accu = self.slots, self.slots + 1, self.slots + 2
        self.slots += 3
        builds = isinstance(expr.accu_init, ast.ListExpr | ast.MapExpr) and not list(
            ast.children(expr.accu_init)
        )
        fold = Fold(first, second, accu, init, builds=builds, two=bool(expr.iter_var2))
        outside = len(self._locals)
        self._locals.append((expr.accu_var, fold.read_accumulator(), None))
        self._locals.append((expr.iter_var, local_step(first), first))
        if expr.iter_var2:
            self._locals.append((expr.iter_var2, local_step(second), second))
        condition = self.plan(expr.loop_condition).step
        step = self._loop_step(expr, fold)
        del self._locals[outside + 1 :]
        result = self.plan(expr.result).step
        del self._locals[outside:]
        return _Computed(fold_step(fold, iter_range, condition, step, result))

    def _loop_step(self, expr: ast.Comprehension, fold: Fold) -> Step:
        """The step of a list or map under construction extends it in place; everywhere else the accumulator is only read."""
        step, accu_var = expr.loop_step, expr.accu_var
        if not fold.builds:
            return self.plan(step).step
        match step:
            case ast.Call(function="_?_:_", args=(condition, grow, keep)) if _grows(grow, accu_var):
                return Conditional(
                    self.plan(condition).step,
                    Path(self._grow(grow)),
                    _as_attribute(self.plan(keep)),
                ).step
            case _ if _grows(step, accu_var):
                return self._grow(step)
        return self.plan(step).step

    def _grow(self, call: ast.Expr) -> Step:
        assert isinstance(call, ast.Call)
        ids = self._checked.references[call.id].overloads
        overload = self._declarations.overloads[ids[0]] if len(ids) == 1 else None
        function = self._declarations.functions[call.function]
        steps = [self.plan(arg).step for arg in call.args]
        return call_step(function, overload, steps, grows=True)


def _variable(name: str) -> Step:
    missing = EvaluationError(f"no such attribute(s): {name}")
    return lambda state: state.variables.get(name, missing)


def _as_attribute(planned: _Planned) -> Attribute:
    """Something that a path can start from: a path is extended, anything else is the root of a new one."""
    return planned if isinstance(planned, Path | Conditional) else Path(planned.step)


def _grows(expr: ast.Expr, accu_var: str) -> bool:
    """Whether an expression adds to the accumulator: `accu + [x]` or an insertion into it."""
    match expr:
        case ast.Call(function="_+_" | "cel.@mapInsert", args=(ast.Ident(name=name), *_)):
            return name == accu_var
    return False


def _logical(terms: list[Step], *, absorbing: bool) -> Step:
    """`||` (absorbing true) or `&&` (absorbing false): the absorbing value wins over errors, errors over the other value."""

    def step(state: State) -> object:
        error: EvaluationError | None = None
        for term in terms:
            value = term(state)
            if value is absorbing:
                return absorbing
            if value is not (not absorbing) and error is None:
                error = value if isinstance(value, EvaluationError) else no_such_overload()
        return not absorbing if error is None else error

    return step


def _optional_or(left: Step, right: Step, *, unwrap: bool) -> Step:
    def step(state: State) -> object:
        value = left(state)
        if not isinstance(value, OptionalValue):
            return value
        if value is NONE:
            return right(state)
        return value.value if unwrap else value

    return step
