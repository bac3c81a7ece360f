"""The syntax tree, as the parser builds it and the checker annotates it.

Macros are expanded while parsing, so a tree holds only these eight shapes; operators are calls to functions with CEL's own internal names
(`_+_`, `_?_:_`, `_[_]`, `@in`, `_?._`, `_[?_]`, ...), which is also how overloads are declared and costs are distinguished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from drayman.cel.types import Type


class Literal(Struct, frozen=True):
    """A constant: None, bool, int, UInt, float, str or bytes, in the representation of `drayman.cel.values`."""

    id: int
    value: object


class Ident(Struct, frozen=True):
    id: int
    name: str  # may start with a dot: looked up from the root


class Select(Struct, frozen=True):
    id: int
    operand: Expr
    field: str
    test_only: bool = False  # from has()


class Call(Struct, frozen=True):
    id: int
    function: str
    target: Expr | None  # of a member call
    args: tuple[Expr, ...]


class ListExpr(Struct, frozen=True):
    id: int
    elements: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()  # indices of `?element`


class MapEntry(Struct, frozen=True):
    id: int
    key: Expr
    value: Expr
    optional: bool = False


class MapExpr(Struct, frozen=True):
    id: int
    entries: tuple[MapEntry, ...]


class FieldEntry(Struct, frozen=True):
    id: int
    name: str
    value: Expr
    optional: bool = False


class StructExpr(Struct, frozen=True):
    id: int
    type_name: str
    fields: tuple[FieldEntry, ...]


class Comprehension(Struct, frozen=True):
    id: int
    iter_range: Expr
    iter_var: str
    iter_var2: str  # empty in the one-variable form
    accu_var: str
    accu_init: Expr
    loop_condition: Expr
    loop_step: Expr
    result: Expr


Expr: TypeAlias = Literal | Ident | Select | Call | ListExpr | MapExpr | StructExpr | Comprehension


class Reference(Struct, frozen=True):
    """What an identifier or call was resolved to: a declared name, or the candidate overloads of a function."""

    name: str = ""
    overloads: tuple[str, ...] = ()
    value: object = None  # of a constant that an identifier names


class Parsed(Struct, frozen=True):
    source: str
    expr: Expr
    offsets: Mapping[int, int]  # node id to code-point offset in the source


class Checked(Struct, frozen=True):
    source: str
    expr: Expr
    offsets: Mapping[int, int]
    types: Mapping[int, Type]  # node id to type; nodes without an entry are dynamic
    references: Mapping[int, Reference]

    @property
    def output_type(self) -> Type:
        return self.types[self.expr.id]


def children(expr: Expr) -> Iterator[Expr]:
    """The direct parts of an expression, in source order."""
    match expr:
        case Literal() | Ident():
            return
        case Select():
            yield expr.operand
        case Call():
            if expr.target is not None:
                yield expr.target
            yield from expr.args
        case ListExpr():
            yield from expr.elements
        case MapExpr():
            for entry in expr.entries:
                yield entry.key
                yield entry.value
        case StructExpr():
            for field in expr.fields:
                yield field.value
        case Comprehension():
            yield expr.iter_range
            yield expr.accu_init
            yield expr.loop_condition
            yield expr.loop_step
            yield expr.result


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, parents first."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))
