"""Types for every node, overloads for every call, and errors that point at what is wrong.

The result is a tree in which names are resolved: `optional.of(x)` is a call of the global function `optional.of`, and
`net.IP` is one identifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from drayman.cel import ast, types
from drayman.cel.declarations import Declarations, Name
from drayman.cel.errors import CompileError, Issue
from drayman.cel.functions import Function, Message, Overload
from drayman.cel.types import DYN, ERROR, Type, TypeKind
from drayman.cel.unify import Substitution, assign, assign_all, most_general, substitute
from drayman.cel.values import UInt

_LITERAL_TYPES: dict[type, Type] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
}


def check(parsed: ast.Parsed, declarations: Declarations) -> ast.Checked:
    """Raises CompileError with every issue found. Needs `room_for_recursion`."""
    checker = _Checker(parsed, declarations)
    expr = checker.check(parsed.expr)
    if checker.issues:
        raise CompileError.from_issues(parsed.source, checker.issues)
    known = checker.substitution
    resolved = {
        node: substitute(known, type_, free_to_dyn=True) for node, type_ in checker.types.items()
    }
    return ast.Checked(parsed.source, expr, parsed.offsets, resolved, checker.references)


def signature(args: Sequence[Type], *, member: bool) -> str:
    """How a call looks in messages: `(int, string)`, or `list(int).(string)` with a target."""
    if member:
        return f"{args[0]}.({', '.join(map(str, args[1:]))})"
    return f"({', '.join(map(str, args))})"


def qualified_name(expr: ast.Expr) -> str | None:
    """`a.b.c` as a dotted name, if the expression is just that."""
    parts: list[str] = []
    while isinstance(expr, ast.Select) and not expr.test_only:
        parts.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, ast.Ident):
        return None
    return ".".join([expr.name, *reversed(parts)])


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    return (type_.parameters[0], True) if type_.is_optional else (type_, False)


@dataclass(slots=True)
class _Scope:
    """A local variable and the scopes around it."""

    name: str
    type: Type
    outer: _Scope | None


class _Checker:
    def __init__(self, parsed: ast.Parsed, declarations: Declarations) -> None:
        self.types: dict[int, Type] = {}
        self.references: dict[int, ast.Reference] = {}
        self.issues: list[Issue] = []
        self.substitution: Substitution = {}
        self._parsed = parsed
        self._declarations = declarations
        self._scope: _Scope | None = None
        self._parameters = 0

    # --- bookkeeping ---

    def _report(self, node_id: int, message: str) -> None:
        offset = self._parsed.offsets[node_id]
        self.issues.append(Issue.at(self._parsed.source, offset, message))

    def _set(self, expr: ast.Expr, type_: Type) -> ast.Expr:
        self.types[expr.id] = type_
        return expr

    def _type(self, expr: ast.Expr) -> Type:
        return self.types[expr.id]

    def _fresh(self) -> Type:
        self._parameters += 1
        return types.parameter(f"_var{self._parameters - 1}")

    def _assign(self, value: Type, target: Type) -> bool:
        found = assign(self.substitution, value, target)
        if found is None:
            return False
        self.substitution = found
        return True

    def _lookup(self, identifier: str) -> Name | None:
        name = identifier.removeprefix(".")
        scope = self._scope
        while scope is not None:
            if scope.name == name:
                return Name(name, scope.type)
            scope = scope.outer
        return self._declarations.name(identifier)

    def _undeclared(self, node_id: int, name: str) -> None:
        self._report(node_id, f"undeclared reference to '{name}' (in container '')")

    # --- expressions ---

    def check(self, expr: ast.Expr) -> ast.Expr:
        match expr:
            case ast.Literal():
                return self._set(expr, _LITERAL_TYPES[type(expr.value)])
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
            case ast.StructExpr():
                return self._struct(expr)
            case ast.Comprehension():
                return self._comprehension(expr)

    def _refer(self, expr: ast.Expr, name: Name) -> ast.Expr:
        self.references[expr.id] = ast.Reference(name.name, value=name.value)
        return self._set(ast.Ident(expr.id, name.name), name.type)

    def _ident(self, expr: ast.Ident) -> ast.Expr:
        name = self._lookup(expr.name)
        if name is not None:
            return self._refer(expr, name)
        self._undeclared(expr.id, expr.name)
        return self._set(expr, ERROR)

    def _select(self, expr: ast.Select) -> ast.Expr:
        dotted = qualified_name(expr)
        name = self._lookup(dotted) if dotted is not None else None
        if name is not None:
            return self._refer(expr, name)
        operand = self.check(expr.operand)
        type_, is_optional = self._field_type(expr.id, self._type(operand), expr.field)
        if expr.test_only:
            type_ = types.BOOL
        elif is_optional:
            type_ = types.optional_of(type_)
        return self._set(replace(expr, operand=operand), substitute(self.substitution, type_))

    def _field_type(self, node_id: int, operand: Type, field: str) -> tuple[Type, bool]:
        """The type of a field, and whether the operand was an optional."""
        target, is_optional = unwrap_optional(substitute(self.substitution, operand))
        match target.kind:
            case TypeKind.MAP:
                return target.parameters[1], is_optional
            case TypeKind.OBJECT:
                found = self._declarations.fields.get(target.name, {}).get(field)
                if found is not None:
                    return found, is_optional
                self._report(node_id, f"undefined field '{field}'")
                return ERROR, is_optional
            case TypeKind.PARAMETER:
                self._assign(DYN, target)
            case _ if not target.is_dynamic:
                self._report(node_id, f"type '{target}' does not support field selection")
        return DYN, is_optional

    def _optional_select(self, expr: ast.Call) -> ast.Expr:
        operand, field = self.check(expr.args[0]), expr.args[1]
        assert isinstance(field, ast.Literal)
        type_, _ = self._field_type(expr.id, self._type(operand), str(field.value))
        self._set(field, types.STRING)
        self.references[expr.id] = ast.Reference("_?._", ("select_optional_field",))
        result = substitute(self.substitution, types.optional_of(type_))
        return self._set(replace(expr, args=(operand, field)), result)

    def _list(self, expr: ast.ListExpr) -> ast.Expr:
        elements: list[ast.Expr] = []
        joined: Type | None = None
        for index, element in enumerate(expr.elements):
            checked = self.check(element)
            type_ = self._element_type(checked, index in expr.optional)
            joined = self._join(joined, type_)
            elements.append(checked)
        type_ = types.list_of(joined if joined is not None else self._fresh())
        return self._set(replace(expr, elements=tuple(elements)), type_)

    def _element_type(self, expr: ast.Expr, optional: bool) -> Type:
        type_ = self._type(expr)
        if not optional:
            return type_
        inner, is_optional = unwrap_optional(type_)
        if not is_optional and type_.kind not in (TypeKind.DYN, TypeKind.ANY):
            self._mismatch(expr, types.optional_of(type_), type_)
        return inner

    def _mismatch(self, expr: ast.Expr, expected: Type, found: Type) -> None:
        self._report(expr.id, f"expected type '{expected}' but found '{found}'")

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The common type of elements; mixed literals are refused later, with an exception that depends on the whole tree."""
        if previous is None:
            return current
        return most_general(previous, current) if self._assign(previous, current) else DYN

    def _map(self, expr: ast.MapExpr) -> ast.Expr:
        entries: list[ast.MapEntry] = []
        key_type: Type | None = None
        value_type: Type | None = None
        for entry in expr.entries:
            key = self.check(entry.key)
            key_type = self._join(key_type, self._type(key))
            value = self.check(entry.value)
            value_type = self._join(value_type, self._element_type(value, entry.optional))
            entries.append(replace(entry, key=key, value=value))
        type_ = types.map_of(key_type or self._fresh(), value_type or self._fresh())
        return self._set(replace(expr, entries=tuple(entries)), type_)

    def _struct(self, expr: ast.StructExpr) -> ast.Expr:
        name = self._lookup(expr.type_name)
        message = None if name is None else self._declarations.messages.get(name.name)
        if name is None:
            self._undeclared(expr.id, expr.type_name)
        elif name.type.kind is not TypeKind.TYPE:
            self._report(expr.id, f"'{name.type}' is not a type")
        elif message is None:
            self._report(expr.id, f"'{name.name}' is not a message type")
        if message is None:
            return self._set(expr, ERROR)
        fields = tuple([self._message_field(message, field) for field in expr.fields])
        built = replace(expr, type_name=message.name, fields=fields)
        return self._set(built, message.type)

    def _message_field(self, message: Message, field: ast.FieldEntry) -> ast.FieldEntry:
        value = self.check(field.value)
        found = self._element_type(value, field.optional)
        expected = message.fields.get(field.name)
        if expected is None:
            self._report(field.id, f"undefined field '{field.name}'")
        elif not self._assign(expected, found):
            text = f"expected type of field '{field.name}' is '{expected}' but provided type is '{found}'"
            self._report(field.id, text)
        return replace(field, value=value)

    # --- calls ---

    def _call(self, expr: ast.Call) -> ast.Expr:
        if expr.function == "_?._":
            return self._optional_select(expr)
        args = tuple([self.check(arg) for arg in expr.args])
        if expr.target is None:
            return self._resolve(
                replace(expr, args=args), self._declarations.function(expr.function)
            )
        prefix = qualified_name(expr.target)
        if prefix is not None:
            namespaced = self._declarations.function(f"{prefix}.{expr.function}")
            if namespaced is not None:
                return self._resolve(replace(expr, target=None, args=args), namespaced)
        target = self.check(expr.target)
        function = self._declarations.function(expr.function)
        return self._resolve(replace(expr, target=target, args=args), function)

    def _resolve(self, call: ast.Call, function: Function | None) -> ast.Expr:
        if function is None:
            self._undeclared(call.id, call.function)
            return self._set(call, ERROR)
        call = replace(call, function=function.name)
        if function.name in ("_&&_", "_||_"):
            return self._logical(call, function)
        operands = call.args if call.target is None else (call.target, *call.args)
        arg_types = [self._type(operand) for operand in operands]
        matching: list[str] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != (call.target is not None):
                continue
            found = self._match(overload, arg_types)
            if found is None:
                continue
            matching.append(overload.id)
            if result is None:
                result = found
            elif result.kind not in (TypeKind.DYN, TypeKind.ANY) and found != result:
                result = DYN
        if result is None:
            shown = [substitute(self.substitution, t, free_to_dyn=True) for t in arg_types]
            text = signature(shown, member=call.target is not None)
            self._report(
                call.id, f"found no matching overload for '{function.name}' applied to '{text}'"
            )
            return self._set(call, ERROR)
        self.references[call.id] = ast.Reference(function.name, tuple(matching))
        return self._set(call, result)

    def _match(self, overload: Overload, args: Sequence[Type]) -> Type | None:
        """The result type of an overload for these arguments, if it takes them."""
        signature_types = (overload.result, *overload.params)
        fresh = {p: self._fresh() for p in _parameters(signature_types)}
        if fresh:
            signature_types = tuple([substitute(fresh, t) for t in signature_types])
        found = assign_all(self.substitution, args, signature_types[1:])
        if found is None:
            return None
        self.substitution = found
        return substitute(found, signature_types[0])

    def _logical(self, call: ast.Call, function: Function) -> ast.Expr:
        fits = True
        for arg in call.args:
            if not self._assign(self._type(arg), types.BOOL):
                self._mismatch(arg, types.BOOL, self._type(arg))
                fits = False
        self.references[call.id] = ast.Reference(function.name, (function.overloads[0].id,))
        return self._set(call, types.BOOL if fits else ERROR)

    # --- comprehensions ---

    def _comprehension(self, expr: ast.Comprehension) -> ast.Expr:
        iter_range = self.check(expr.iter_range)
        accu_init = self.check(expr.accu_init)
        accu_type = self._type(accu_init)
        first, second = self._range_types(iter_range, two=bool(expr.iter_var2))
        outside = self._scope
        with_accu = _Scope(expr.accu_var, accu_type, outside)
        self._scope = _Scope(expr.iter_var, first, with_accu)
        if expr.iter_var2:
            self._scope = _Scope(expr.iter_var2, second, self._scope)
        condition = self.check(expr.loop_condition)
        self._assert_type(condition, types.BOOL)
        step = self.check(expr.loop_step)
        self._assert_type(step, accu_type)
        self._scope = with_accu
        result = self.check(expr.result)
        self._scope = outside
        checked = replace(
            expr,
            iter_range=iter_range,
            accu_init=accu_init,
            loop_condition=condition,
            loop_step=step,
            result=result,
        )
        return self._set(checked, substitute(self.substitution, self._type(result)))

    def _range_types(self, iter_range: ast.Expr, *, two: bool) -> tuple[Type, Type]:
        """The types of the iteration variables; the second is only meaningful if there are two."""
        type_ = substitute(self.substitution, self._type(iter_range))
        match type_.kind:
            case TypeKind.LIST:
                element = type_.parameters[0]
                return (types.INT, element) if two else (element, element)
            case TypeKind.MAP:
                return type_.parameters[0], type_.parameters[1]
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAMETER:
                self._assign(DYN, type_)
                return DYN, DYN
        self._report(
            iter_range.id,
            f"expression of type '{type_}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _assert_type(self, expr: ast.Expr, expected: Type) -> None:
        if not self._assign(expected, self._type(expr)):
            self._mismatch(expr, expected, self._type(expr))


def _parameters(signature_types: Sequence[Type]) -> dict[Type, None]:
    """The type parameters in a signature, in order."""
    found: dict[Type, None] = {}
    pending = list(signature_types)
    while pending:
        type_ = pending.pop(0)
        if type_.kind is TypeKind.PARAMETER:
            found[type_] = None
        pending.extend(type_.parameters)
    return found
