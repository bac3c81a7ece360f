"""The syntax tree, as the parser builds it and the checker annotates it.

Macros are expanded while parsing, so a tree holds only these eight shapes; operators are calls to functions with CEL's own
internal names (`_+_`, `_?_:_`, `_[_]`, `@in`, `_?._`, `_[?_]`, ...), which is also how overloads are declared and costs are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from drayman.cel.types import Type


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: None, bool, int, UInt, float, str or bytes, in the representation of `drayman.cel.values`."""

    id: int
    value: object


@dataclass(frozen=True, slots=True)
class Ident:
    id: int
    name: str  # may start with a dot: looked up from the root


@dataclass(frozen=True, slots=True)
class Select:
    id: int
    operand: Expr
    field: str
    test_only: bool = False  # from has()


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    function: str
    target: Expr | None  # of a member call
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ListExpr:
    id: int
    elements: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()  # indices of `?element`


@dataclass(frozen=True, slots=True)
class MapEntry:
    id: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapExpr:
    id: int
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class FieldEntry:
    id: int
    name: str
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StructExpr:
    id: int
    type_name: str
    fields: tuple[FieldEntry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
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


@dataclass(frozen=True, slots=True)
class Reference:
    """What an identifier or call was resolved to: a declared name, or the candidate overloads of a function."""

    name: str = ""
    overloads: tuple[str, ...] = ()
    value: object = None  # of a constant that an identifier names


@dataclass(frozen=True, slots=True)
class Parsed:
    source: str
    expr: Expr
    offsets: Mapping[int, int]  # node id to code-point offset in the source


@dataclass(frozen=True, slots=True)
class Checked:
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
