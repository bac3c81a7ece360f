"""Which types fit where, and what type parameters stand for.

A `Substitution` maps type parameters to types and is never changed in place: an attempt that fails leaves the old one in use.
Assignability is the reference implementation's, including that it is symmetric for `dyn` and that it forgives `null` for object types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from drayman.cel.types import DYN, Type, TypeKind

Substitution: TypeAlias = Mapping[Type, Type]

_NULLABLE = frozenset(
    (TypeKind.OPAQUE, TypeKind.OBJECT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP)
)
_CONTAINERS = frozenset((TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP))
_PARAMETRIC = frozenset((TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP, TypeKind.TYPE))


def assign(known: Substitution, value: Type, target: Type) -> Substitution | None:
    """The substitution under which a value of one type can be used as the other; None if there is none."""
    attempt = dict(known)
    return attempt if _assignable(attempt, value, target) else None


def assign_all(
    known: Substitution, values: Sequence[Type], targets: Sequence[Type]
) -> Substitution | None:
    attempt = dict(known)
    return attempt if _all_assignable(attempt, values, targets) else None


def substitute(known: Substitution, type_: Type, *, free_to_dyn: bool = False) -> Type:
    """The type with parameters replaced by what they stand for; free ones by `dyn` if asked."""
    while type_.kind is TypeKind.PARAMETER:
        replacement = known.get(type_)
        if replacement is None:
            return DYN if free_to_dyn else type_
        type_ = replacement
    if type_.parameters and type_.kind in _PARAMETRIC:
        parts = tuple(
            [substitute(known, part, free_to_dyn=free_to_dyn) for part in type_.parameters]
        )
        return Type(type_.kind, type_.name, parts)
    return type_


def most_general(left: Type, right: Type) -> Type:
    """The more general of two types that are known to fit."""
    return left if _less_specific(left, right) else right


def equivalent(left: Type, right: Type) -> bool:
    """Whether two types are the same except for the names of type parameters, and wrappers."""
    left, right = left.unwrapped, right.unwrapped
    if left.kind is not right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind is not TypeKind.PARAMETER and left.name != right.name:
        return False
    return all(equivalent(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))


def _is_dyn(type_: Type) -> bool:
    return type_.kind in (TypeKind.DYN, TypeKind.ANY)


def _less_specific(left: Type, right: Type) -> bool:
    if _is_dyn(left) or left.kind is TypeKind.PARAMETER:
        return True
    if _is_dyn(right) or right.kind is TypeKind.PARAMETER or left.kind is not right.kind:
        return False
    if left.kind is TypeKind.TYPE:
        return True
    if left.kind in _CONTAINERS:
        if left.name != right.name or len(left.parameters) != len(right.parameters):
            return False
        pairs = zip(left.parameters, right.parameters, strict=True)
        return all(_less_specific(a, b) for a, b in pairs)
    return left.unwrapped == right.unwrapped


def _assignable(known: dict[Type, Type], left: Type, right: Type) -> bool:
    if right.kind is TypeKind.PARAMETER:
        valid, bound = _substitutes(known, left, right)
        if valid or bound:
            return valid
    if left.kind is TypeKind.PARAMETER:
        return _substitutes(known, right, left)[0]
    if left.is_dynamic or right.is_dynamic:
        return True
    if left.kind is TypeKind.NULL or right.kind is TypeKind.NULL:
        other = right if left.kind is TypeKind.NULL else left
        return other.kind is TypeKind.NULL or other.kind in _NULLABLE or other.is_wrapper
    if left.kind is TypeKind.TYPE:
        return right.kind is TypeKind.TYPE
    if left.kind in _CONTAINERS:
        same = left.kind is right.kind and left.name == right.name
        return same and _all_assignable(known, left.parameters, right.parameters)
    return left.unwrapped == right.unwrapped


def _all_assignable(known: dict[Type, Type], left: Sequence[Type], right: Sequence[Type]) -> bool:
    if len(left) != len(right):
        return False
    return all(_assignable(known, a, b) for a, b in zip(left, right, strict=True))


def _substitutes(known: dict[Type, Type], type_: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether the parameter can stand for the type, recording it, and whether it stood for something before."""
    if type_ == parameter:
        return True, True
    bound = known.get(parameter)
    if bound is not None:
        if type_.unwrapped == bound.unwrapped:
            return True, True
        if not _assignable(known, type_, bound):
            return False, True
        general = most_general(type_, bound)
        if not _occurs(known, parameter, general):
            known[parameter] = general
        return True, True
    if _occurs(known, parameter, type_):
        return False, False
    known[parameter] = type_
    return True, False


def _occurs(known: Substitution, parameter: Type, within: Type) -> bool:
    if parameter == within:
        return True
    if within.kind is TypeKind.PARAMETER:
        bound = known.get(within)
        return bound is not None and _occurs(known, parameter, bound)
    if within.kind in _PARAMETRIC:
        return any(_occurs(known, parameter, part) for part in within.parameters)
    return False
