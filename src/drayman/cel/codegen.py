"""A checked tree to the source of a Python function, for the path that most evaluations take.

The function computes the same value as the interpreter or raises. It uses Python's own `and`, `or` and dict access, and compares
directly where classes are known: a value has the class that its origin guarantees (a literal, an operator, a declared
result of a function). Static types alone are no guarantee, because dynamic values pass through containers unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.cel import ast, fastpath
from drayman.cel.calls import cost_rule, membership_step
from drayman.cel.costs import PENDING
from drayman.cel.declarations import Declarations
from drayman.cel.depth import levels
from drayman.cel.dispatch import dispatcher, is_singleton
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Overload
from drayman.cel.snippets import Code, Unsupported, direct_equality, is_map, mentions, ordering
from drayman.cel.standard.collections import contains
from drayman.cel.types import Kind
from drayman.cel.values import LISTS, MapValue, OptionalValue, equal, size_of

_MAX_NODES = 400
_MAX_DEPTH = 40  # Python's own parser and the stack limit what it takes
_MAX_FOLDED = 256  # size of a constant that is worth computing ahead

_RESULT_CLASSES: Final[Mapping[Kind, type]] = {
    Kind.BOOL: bool,
    Kind.INT: int,
    Kind.DOUBLE: float,
    Kind.STRING: str,
}
_ORDERINGS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_QUANTIFIERS: Final = {"_&&_": ("every", "every_pair"), "_||_": ("some", "some_pair")}
_NOT_FOLDED: Final = frozenset(
    ("_&&_", "_||_", "_?_:_", "@not_strictly_false", "or", "orValue", "@in")
)
_HELPERS: Final[Mapping[str, object]] = {
    name: getattr(fastpath, name)
    for name in [
        "bail",
        "index",
        "is_opaque",
        "present",
        "optional_step",
        "or_value",
        "or_optional",
        "ordered",
        "every",
        "some",
        "every_pair",
        "some_pair",
        "mapped",
    ]
} | {"equal": equal, "contains": contains}


def generate(
    checked: ast.Checked,
    declarations: Declarations,
    variable: str,
    known: Mapping[tuple[str, ...], type],
) -> Callable[[object], object] | None:
    """A function of the variable, or None if the expression is not for the fast path.

    `known` has the class of what paths from the variable lead to, where that is certain.
    """
    nodes = sum(1 for _ in ast.walk(checked.expr))
    if nodes > _MAX_NODES or levels(checked.expr) > _MAX_DEPTH:
        return None
    generator = _Generator(checked, declarations, variable, known)
    try:
        body = generator.emit(checked.expr)
    except Unsupported:
        return None
    namespace: dict[str, object] = {**_HELPERS, **generator.constants}
    source = f"def evaluate({variable}):\n    return {body.text}\n"
    exec(compile(source, "<cel>", "exec"), namespace)
    evaluate = namespace["evaluate"]
    assert callable(evaluate)
    return evaluate


@dataclass(slots=True)
class _Generator:
    checked: ast.Checked
    declarations: Declarations
    variable: str
    known: Mapping[tuple[str, ...], type]
    constants: dict[str, object] = field(default_factory=dict)
    _locals: dict[str, str] = field(default_factory=dict)
    _names: int = 0

    # --- names and constants ---

    def _fresh(self, prefix: str) -> str:
        self._names += 1
        return f"_{prefix}{self._names}"

    def _bind(self, value: object) -> str:
        name = self._fresh("k")
        self.constants[name] = value
        return name

    def _constant(self, value: object) -> Code:
        if value is None or isinstance(value, bool) or (type(value) is int) or type(value) is str:
            return Code(f"({value!r})", type(value), value)
        return Code(self._bind(value), type(value), value)

    # --- expressions ---

    def emit(self, expr: ast.Expr) -> Code:
        match expr:
            case ast.Literal():
                return self._constant(expr.value)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._path(expr)
            case ast.Call():
                return self._call(expr)
            case ast.ListExpr():
                return self._list(expr)
            case ast.MapExpr():
                return self._map(expr)
            case ast.Comprehension():
                return self._comprehension(expr)
        raise Unsupported

    def _ident(self, expr: ast.Ident) -> Code:
        reference = self.checked.references.get(expr.id)
        if reference is not None and reference.value is not None:
            return self._constant(reference.value)
        if expr.name in self._locals:
            self._refuse_optional(expr)
            return Code(self._locals[expr.name])
        if expr.name != self.variable:
            raise Unsupported
        return Code(expr.name, self.known.get(()))

    def _refuse_optional(self, expr: ast.Expr) -> None:
        """Optionals that come out of variables and conditions are for the interpreter, see `attributes`."""
        if self.checked.types[expr.id].is_optional:
            raise Unsupported

    def _list(self, expr: ast.ListExpr) -> Code:
        if expr.optional:
            raise Unsupported
        elements = [self.emit(element) for element in expr.elements]
        if all(element.is_constant for element in elements):
            return self._constant([element.constant for element in elements])
        return Code(f"[{', '.join(element.text for element in elements)}]", list)

    def _map(self, expr: ast.MapExpr) -> Code:
        parts = [(self.emit(e.key), self.emit(e.value), e.optional) for e in expr.entries]
        if not all(key.is_constant and value.is_constant and not o for key, value, o in parts):
            raise Unsupported
        try:
            return self._constant(MapValue.of((k.constant, v.constant) for k, v, _ in parts))
        except EvaluationError:
            raise Unsupported from None

    # --- paths ---

    def _path(self, expr: ast.Expr) -> Code:
        """Selections and indices, from the root on; once a step is optional, so are all that follow."""
        steps: list[tuple[Code, bool]] = []
        test_only = isinstance(expr, ast.Select) and expr.test_only
        while True:
            match expr:
                case ast.Select(operand=operand, field=name):
                    steps.append((self._constant(name), False))
                case ast.Call(function="_[_]", args=(operand, key)):
                    steps.append((self.emit(key), False))
                case ast.Call(function="_[?_]" | "_?._", args=(operand, key)):
                    steps.append((self.emit(key), True))
                case _:
                    break
            expr = operand
        if self.checked.types[expr.id].is_optional:
            raise Unsupported
        return self._follow(expr, list(reversed(steps)), test_only)

    def _follow(self, root: ast.Expr, steps: list[tuple[Code, bool]], test_only: bool) -> Code:
        code = self.emit(root)
        is_input = isinstance(root, ast.Ident) and root.name not in self._locals
        names: tuple[str, ...] | None = () if is_input else None
        optional = False
        for position, (key, starts_optional) in enumerate(steps):
            optional = optional or starts_optional
            is_last = position == len(steps) - 1
            if optional:
                if test_only:
                    raise Unsupported
                code = Code(f"optional_step({code.text}, {key.text})", OptionalValue)
                continue
            names = self._extended(names, key)
            if test_only and is_last:
                return Code(self._presence(code, key), bool)
            code = Code(self._step(code, key), self._class_at(names))
        return code

    def _extended(self, names: tuple[str, ...] | None, key: Code) -> tuple[str, ...] | None:
        if names is None:
            return None
        return (*names, key.constant if isinstance(key.constant, str) else "*")

    def _class_at(self, names: tuple[str, ...] | None) -> type | None:
        """What is at a path of the input; a `*` in `known` stands for any key."""
        if names is None:
            return None
        for pattern, of in self.known.items():
            if len(pattern) == len(names) and all(
                p in ("*", n) for p, n in zip(pattern, names, strict=True)
            ):
                return of
        return None

    def _step(self, container: Code, key: Code) -> str:
        if is_map(container) and key.of is str:
            return f"{container.text}[{key.text}]"
        return f"index({container.text}, {key.text})"

    def _presence(self, container: Code, key: Code) -> str:
        if container.of is MapValue and key.of is str:
            return f"({key.text} in {container.text})"
        return f"present({container.text}, {key.text})"

    # --- calls ---

    def _call(self, expr: ast.Call) -> Code:
        match expr.function:
            case "_[_]" | "_[?_]" | "_?._":
                return self._path(expr)
            case "_&&_" | "_||_":
                word = " and " if expr.function == "_&&_" else " or "
                return Code(f"({word.join(self._bool(arg) for arg in expr.args)})", bool)
            case "_?_:_":
                return self._conditional(expr)
            case "!_":
                return Code(f"(not {self._bool(expr.args[0])})", bool)
            case "_==_":
                return self._equality(expr)
            case "_!=_":
                return Code(f"(not {self._equality(expr).text})", bool)
            case "or" | "orValue" if expr.target is not None and len(expr.args) == 1:
                target, other = self.emit(expr.target), self.emit(expr.args[0])
                helper = "or_value" if expr.function == "orValue" else "or_optional"
                return Code(f"{helper}({target.text}, lambda: {other.text})")
            case "@not_strictly_false":
                raise Unsupported
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        return self._function(expr, [self.emit(operand) for operand in operands])

    def _bool(self, expr: ast.Expr) -> str:
        code = self.emit(expr)
        if code.of is bool:
            return code.text
        name = self._fresh("b")
        return f"({name} if ({name} := {code.text}).__class__ is bool else bail())"

    def _conditional(self, expr: ast.Call) -> Code:
        self._refuse_optional(expr)
        condition = self._bool(expr.args[0])
        if_true, if_false = self.emit(expr.args[1]), self.emit(expr.args[2])
        of = if_true.of if if_true.of is if_false.of else None
        return Code(f"({if_true.text} if {condition} else {if_false.text})", of)

    def _equality(self, expr: ast.Call) -> Code:
        left, right = self.emit(expr.args[0]), self.emit(expr.args[1])
        text = direct_equality(left, right, self._fresh("e"))
        return Code(text or f"equal({left.text}, {right.text})", bool)

    def _function(self, expr: ast.Call, args: list[Code]) -> Code:
        function = self.declarations.functions[expr.function]
        ids = self.checked.references[expr.id].overloads
        overload = self.declarations.overloads[ids[0]] if len(ids) == 1 else None
        if all(arg.is_constant for arg in args):
            folded = self._folded(function, overload, [arg.constant for arg in args])
            if folded is not None:
                return folded
        text = ", ".join(arg.text for arg in args)
        if function.name in _ORDERINGS:
            return Code(
                ordering(_ORDERINGS[function.name], args[0], args[1], self._fresh("o")), bool
            )
        if function.name == "@in":
            return self._membership(args[0], args[1])
        if overload is not None and not is_singleton(function):
            of = _RESULT_CLASSES.get(overload.result.kind)
            return Code(f"{self._bind(fastpath.caller(function, overload))}({text})", of)
        return Code(f"{self._bind(fastpath.caller(function, None))}({text})")

    def _folded(
        self, function: Function, overload: Overload | None, args: list[object]
    ) -> Code | None:
        """A call of constants as a constant, if that is cheap and succeeds."""
        if function.name in _NOT_FOLDED:
            return None
        try:
            if cost_rule(function, overload)(args, PENDING) > _MAX_FOLDED:
                return None
            value = dispatcher(function, overload)(args)
        except EvaluationError:
            return None
        return self._constant(value) if size_of(value) <= _MAX_FOLDED else None

    def _membership(self, value: Code, container: Code) -> Code:
        if isinstance(container.constant, LISTS):
            step = membership_step(lambda state: state, container.constant)
            if step is not None and all(type(v) is str for v in container.constant):
                members = self._bind(frozenset(container.constant))
                if value.of is str:
                    return Code(f"({value.text} in {members})", bool)
                name = self._fresh("m")
                check = f"({name} := {value.text}).__class__ is str"
                return Code(f"({name} in {members} if {check} else bail())", bool)
            if step is not None:
                raise Unsupported
        if is_map(container) and value.of is str:
            return Code(f"({value.text} in {container.text})", bool)
        return Code(f"contains({value.text}, {container.text})", bool)

    # --- comprehensions ---

    def _comprehension(self, expr: ast.Comprehension) -> Code:
        if isinstance(expr.iter_range, ast.ListExpr) and not expr.iter_range.elements:
            return self._binding(expr)
        container = self.emit(expr.iter_range)
        match expr.loop_step, expr.result:
            case (
                ast.Call(
                    function="_&&_" | "_||_" as function, args=(ast.Ident(name=accu), predicate)
                ),
                ast.Ident(name=result),
            ) if accu == result == expr.accu_var:
                helper = _QUANTIFIERS[function][bool(expr.iter_var2)]
                body = self._function_of(expr, predicate)
                return Code(f"{helper}({container.text}, {body})", bool)
            case ast.Call(function="_+_", args=(ast.Ident(), ast.ListExpr(elements=(value,)))), _:
                return self._mapping(expr, container, None, value)
            case (
                ast.Call(
                    function="_?_:_",
                    args=(
                        condition,
                        ast.Call(
                            function="_+_", args=(ast.Ident(), ast.ListExpr(elements=(value,)))
                        ),
                        ast.Ident(),
                    ),
                ),
                _,
            ):
                return self._mapping(expr, container, condition, value)
        raise Unsupported

    def _mapping(
        self, expr: ast.Comprehension, container: Code, condition: ast.Expr | None, value: ast.Expr
    ) -> Code:
        is_plain = isinstance(expr.accu_init, ast.ListExpr) and isinstance(expr.result, ast.Ident)
        if expr.iter_var2 or not is_plain:
            raise Unsupported
        parts = [container.text, self._function_of(expr, value)]
        if condition is not None:
            parts.append(self._function_of(expr, condition))
        return Code(f"mapped({', '.join(parts)})", list)

    def _function_of(self, expr: ast.Comprehension, body: ast.Expr) -> str:
        """A lambda of the iteration variables. The accumulator is out of reach there."""
        names = [name for name in (expr.iter_var, expr.iter_var2) if name]
        if mentions(body, expr.accu_var):
            raise Unsupported
        outside = dict(self._locals)
        params = [self._fresh("v") for _ in names]
        self._locals.update(zip(names, params, strict=True))
        code = self.emit(body)
        self._locals = outside
        return f"lambda {', '.join(params)}: {code.text}"

    def _binding(self, expr: ast.Comprehension) -> Code:
        value = self.emit(expr.accu_init)
        outside = dict(self._locals)
        name = self._locals[expr.accu_var] = self._fresh("v")
        body = self.emit(expr.result)
        self._locals = outside
        return Code(f"(lambda {name}: {body.text})({value.text})", body.of)
