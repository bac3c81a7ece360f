"""The worst case of an expression's cost, before it ever runs.

A walk over the checked tree as the reference implementation does it: it knows the sizes of literals, follows paths into declared input
(whose sizes the environment gives), derives the sizes of results, and remembers the sizes of the contents of lists and maps. The figure is
what Kubernetes' API compares with its limit, so oddities are kept, such as paths that end at a function call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.costs import (
    FREE,
    LIST_CREATE,
    MAP_CREATE,
    MAX,
    NOT_LITERAL,
    SELECT,
    STRUCT_CREATE,
    UNIT,
    UNKNOWN_SIZE,
    CallEstimate,
    CostEstimate,
    CostNode,
    EntrySize,
    EstimateRule,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from drayman.cel.declarations import Declarations
from drayman.cel.standard_macros import ACCUMULATOR, OLD_ACCUMULATOR
from drayman.cel.types import DYN, Type, TypeKind
from drayman.cel.values import size_of

Path: TypeAlias = tuple[str, ...]
# The size of what a path leads to, if the environment declares one. Elements are `@items`, `@keys`, `@values`, `@indices`.
InputSizes: TypeAlias = Callable[[Path], SizeEstimate | None]

_SCALARS = frozenset(
    (
        TypeKind.BOOL,
        TypeKind.DOUBLE,
        TypeKind.DURATION,
        TypeKind.INT,
        TypeKind.TIMESTAMP,
        TypeKind.UINT,
    )
)
_SELECTABLE = frozenset((TypeKind.MAP, TypeKind.OBJECT, TypeKind.PARAMETER))
_SIZED_LITERALS = (str, bytes, bool, float, int)


def estimate(
    checked: ast.Checked,
    declarations: Declarations,
    equality: Mapping[str, EstimateRule],
    input_sizes: InputSizes,
) -> CostEstimate:
    """Needs `room_for_recursion`."""
    return _Estimator(checked, declarations, equality, input_sizes).cost(checked.expr)


class _Node(Struct, frozen=True):
    """An argument of a call as the rules see it."""

    type: Type
    path: Path
    computed_size: SizeEstimate | None
    entry_size: EntrySize | None
    literal: object
    _sizes: InputSizes

    @property
    def size(self) -> SizeEstimate:
        return self.computed_size if self.computed_size is not None else UNKNOWN_SIZE

    def items(self) -> CostNode | None:
        if not self.type.parameters:
            return None
        path = (*self.path, "@items") if self.path else ()
        size = self._sizes(path) if path else None
        return _Node(self.type.parameters[0], path, size, None, NOT_LITERAL, self._sizes)


class _Local(Struct, frozen=True):
    """What is known about a variable of a comprehension."""

    path: Path
    size: SizeEstimate | None
    entry_size: EntrySize | None


class _Estimator:
    def __init__(
        self,
        checked: ast.Checked,
        declarations: Declarations,
        equality: Mapping[str, EstimateRule],
        input_sizes: InputSizes,
    ) -> None:
        self._checked = checked
        self._declarations = declarations
        self._equality = equality
        self._input_sizes = input_sizes
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, SizeEstimate] = {}
        self._entries: dict[int, EntrySize] = {}
        self._locals: dict[str, list[_Local]] = {}

    # --- what is known about a node ---

    def _type(self, expr: ast.Expr) -> Type:
        return self._checked.types.get(expr.id, DYN)

    def _local(self, expr: ast.Expr) -> _Local | None:
        if isinstance(expr, ast.Ident):
            stack = self._locals.get(expr.name)
            return stack[-1] if stack else None
        return None

    def _path(self, expr: ast.Expr) -> Path:
        local = self._local(expr)
        return local.path if local is not None else self._paths.get(expr.id, ())

    def _size(self, expr: ast.Expr) -> SizeEstimate | None:
        known = self._sizes.get(expr.id)
        if known is None:
            known = _own_size(expr)
        if known is not None:
            return known
        declared = self._declared_size(self._path(expr))
        if declared is not None:
            self._sizes[expr.id] = declared
            return declared
        if _is_scalar(self._type(expr)):
            return fixed_size(1)
        local = self._local(expr)
        return local.size if local is not None else None

    def _declared_size(self, path: Path) -> SizeEstimate | None:
        return self._input_sizes(path) if path else None

    def _size_or_unknown(self, expr: ast.Expr) -> SizeEstimate:
        size = self._size(expr)
        return size if size is not None else UNKNOWN_SIZE

    def _entry(self, expr: ast.Expr) -> EntrySize | None:
        known = self._entries.get(expr.id)
        if known is not None:
            return known
        local = self._local(expr)
        return local.entry_size if local is not None else None

    def _set_size(self, expr: ast.Expr, size: SizeEstimate | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def _set_entry(self, expr: ast.Expr, entry: EntrySize | None) -> None:
        if entry is not None:
            self._entries[expr.id] = entry

    def _node(self, expr: ast.Expr) -> _Node:
        path = self._path(expr)
        if path and path[0] in (ACCUMULATOR, OLD_ACCUMULATOR):
            path = ()
        literal = expr.value if isinstance(expr, ast.Literal) else NOT_LITERAL
        return _Node(
            self._type(expr),
            path,
            self._size(expr),
            self._entry(expr),
            literal,
            self._declared_size,
        )

    # --- costs ---

    def cost(self, expr: ast.Expr) -> CostEstimate:
        match expr:
            case ast.Literal():
                return FREE
            case ast.Ident():
                local = self._local(expr)
                self._paths[expr.id] = local.path if local is not None else (expr.name,)
                return fixed_cost(SELECT)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                return self._call(expr)
            case ast.ListExpr():
                return self._list(expr)
            case ast.MapExpr():
                return self._map(expr)
            case ast.StructExpr():
                return self._total([field.value for field in expr.fields]) + fixed_cost(
                    STRUCT_CREATE
                )
            case ast.Comprehension():
                return self._bind(expr) if _is_bind(expr) else self._comprehension(expr)

    def _total(self, exprs: Sequence[ast.Expr]) -> CostEstimate:
        total = FREE
        for expr in exprs:
            total += self.cost(expr)
        return total

    def _select(self, expr: ast.Select) -> CostEstimate:
        operand = self.cost(expr.operand)
        if expr.test_only:
            return operand
        self._paths[expr.id] = (*self._path(expr.operand), expr.field)
        if self._type(expr.operand).kind in _SELECTABLE:
            return operand + fixed_cost(SELECT)
        return operand

    def _list(self, expr: ast.ListExpr) -> CostEstimate:
        total = self._total(expr.elements)
        self._set_entry(expr, EntrySize(True, fixed_size(1), self._union(expr.elements)))
        return total + fixed_cost(LIST_CREATE)

    def _map(self, expr: ast.MapExpr) -> CostEstimate:
        total = self._total(tuple(ast.children(expr)))
        keys = self._union([entry.key for entry in expr.entries])
        values = self._union([entry.value for entry in expr.entries])
        self._set_entry(expr, EntrySize(False, keys, values))
        return total + fixed_cost(MAP_CREATE)

    def _union(self, exprs: Sequence[ast.Expr]) -> SizeEstimate:
        size = SizeEstimate(MAX, 0) if exprs else SizeEstimate(0, 0)
        for expr in exprs:
            size |= self._size_or_unknown(expr)
        return size

    # --- calls ---

    def _call(self, expr: ast.Call) -> CostEstimate:
        if expr.function == "dyn":
            cost = self.cost(expr.args[0]) + UNIT
            self._copy_sizes(expr, expr.args[0])
            return cost
        costs = [self.cost(arg) for arg in expr.args]
        nodes = [self._node(arg) for arg in expr.args]
        reference = self._checked.references.get(expr.id)
        if reference is None or not reference.overloads:
            return FREE
        target_cost = FREE
        if expr.target is not None:
            target_cost = self.cost(expr.target)
            nodes.insert(0, self._node(expr.target))
        total = CostEstimate(MAX, 0)
        size: SizeEstimate | None = None
        for overload_id in reference.overloads:
            found = self._overload(expr, overload_id, nodes, costs)
            total |= found.cost
            if found.result_size is not None:
                size = found.result_size if size is None else size | found.result_size
            size = self._indexed(expr, overload_id, size)
            if size is None:
                size = self._size(expr)
        self._set_size(expr, size)
        return target_cost + total

    def _indexed(
        self, expr: ast.Call, overload_id: str, size: SizeEstimate | None
    ) -> SizeEstimate | None:
        """Follows the path through an index; the size of an element replaces whatever was known."""
        if overload_id not in ("index_list", "index_map"):
            return size
        container = expr.args[0]
        step = "@items" if overload_id == "index_list" else "@values"
        self._paths[expr.id] = (*self._path(container), step)
        entry = self._entry(container)
        return entry.value if entry is not None else None

    def _overload(
        self, expr: ast.Call, overload_id: str, nodes: list[_Node], costs: list[CostEstimate]
    ) -> CallEstimate:
        if overload_id in ("logical_or", "logical_and"):
            both = costs[0] + costs[1]
            return CallEstimate(CostEstimate(costs[0].min, both.max))
        if overload_id == "conditional":
            left, right = self._entry(expr.args[1]), self._entry(expr.args[2])
            if left is not None and right is not None:
                self._set_entry(expr, left | right)
            return CallEstimate(costs[0] + (costs[1] | costs[2]), nodes[1].size | nodes[2].size)
        found = self._rule_estimate(expr, overload_id, nodes)
        self._set_entry(expr, found.result_entry_size)
        total = found.cost
        for cost in costs:
            total += cost
        return CallEstimate(total, found.result_size)

    def _rule_estimate(self, expr: ast.Call, overload_id: str, nodes: list[_Node]) -> CallEstimate:
        function = self._declarations.functions[expr.function]
        rules = [self._declarations.overloads[overload_id].rule.estimate, function.rule.estimate]
        if overload_id == "equals" and nodes[0].type == nodes[1].type:
            rules.insert(0, self._equality.get(nodes[0].type.name))
        for rule in rules:
            found = rule(nodes) if rule is not None else None
            if found is not None:
                return found
        return CallEstimate(UNIT)

    # --- comprehensions ---

    def _copy_sizes(self, target: ast.Expr, source: ast.Expr) -> None:
        self._set_size(target, self._size(source))
        self._set_entry(target, self._entry(source))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_iteration(self, name: str, iter_range: ast.Expr, *, key: bool) -> None:
        """The variable that gets keys or indices, or the one that gets values."""
        entry, is_list = self._entry(iter_range), self._is_list(iter_range)
        if key:
            step = "@indices" if is_list else "@keys"
        else:
            step = "@items" if is_list else "@values"
        size = None if entry is None else entry.key if key else entry.value
        self._push(name, _Local((*self._path(iter_range), step), size, None))

    def _is_list(self, iter_range: ast.Expr) -> bool:
        entry = self._entry(iter_range)
        return entry.is_list if entry is not None else self._type(iter_range).kind is TypeKind.LIST

    def _comprehension(self, expr: ast.Comprehension) -> CostEstimate:
        total = self.cost(expr.iter_range) + self.cost(expr.accu_init)
        init = expr.accu_init
        self._push(expr.accu_var, _Local(self._path(init), self._size(init), self._entry(init)))
        if expr.iter_var2:
            self._push_iteration(expr.iter_var, expr.iter_range, key=True)
            self._push_iteration(expr.iter_var2, expr.iter_range, key=False)
        else:
            key = not self._is_list(expr.iter_range)
            self._push_iteration(expr.iter_var, expr.iter_range, key=key)
        each = self.cost(expr.loop_condition) + self.cost(expr.loop_step)
        self._locals[expr.iter_var].pop()
        if expr.iter_var2:
            self._locals[expr.iter_var2].pop()
        total += self.cost(expr.result)
        self._locals[expr.accu_var].pop()
        count = self._size_or_unknown(expr.iter_range)
        total += count.times(each)
        match init:
            case ast.Literal():
                self._set_size(expr, self._size(init))
            case ast.ListExpr() | ast.MapExpr():
                self._set_size(expr, count)
                self._set_entry(expr, self._entry(expr.loop_step))
        return total

    def _bind(self, expr: ast.Comprehension) -> CostEstimate:
        total = self.cost(expr.iter_range) + self.cost(expr.accu_init)
        init = expr.accu_init
        self._push(expr.accu_var, _Local(self._path(init), self._size(init), self._entry(init)))
        total += self.cost(expr.result)
        self._locals[expr.accu_var].pop()
        self._copy_sizes(expr, expr.result)
        return total


def _is_bind(expr: ast.Comprehension) -> bool:
    return (
        isinstance(expr.iter_range, ast.ListExpr)
        and not expr.iter_range.elements
        and isinstance(expr.loop_condition, ast.Literal)
        and expr.loop_condition.value is False
        and expr.accu_var != OLD_ACCUMULATOR
    )


def _own_size(expr: ast.Expr) -> SizeEstimate | None:
    match expr:
        case ast.Literal(value=value) if value is None or isinstance(value, _SIZED_LITERALS):
            return fixed_size(size_of(value))
        case ast.ListExpr():
            return fixed_size(len(expr.elements))
        case ast.MapExpr():
            return fixed_size(len(expr.entries))
    return None


def _is_scalar(type_: Type) -> bool:
    if type_.is_optional:
        return _is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS
