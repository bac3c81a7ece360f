"""Sets of fields seen through the shape of the value they are about."""

from __future__ import annotations

from drayman.apiserver.patching.field_set import FieldSet
from drayman.apiserver.patching.shapes import DEDUCED, Shape


def with_named_fields(shape: Shape, fields: FieldSet) -> FieldSet:
    """The set with the declared fields on the path to its members added.

    Owning a field of a struct also means owning the struct's place in the object; for members of a map it does not.
    """
    declared = {} if shape.map is None else shape.map.fields()
    members = set(fields.members)
    children = {}
    for element, below in fields.children.items():
        if element[0] == "f" and element[2:] in declared:
            members.add(element)
        inner = _inner_shape(shape, element)
        children[element] = below if inner is None else with_named_fields(inner, below)
    return FieldSet(frozenset(members), children)


def _inner_shape(shape: Shape, element: str) -> Shape | None:
    if element[0] == "f":
        return None if shape.map is None else shape.map.member(element[2:])
    return None if shape.list is None else shape.list.item()


def with_whole_units(shape: Shape, fields: FieldSet) -> FieldSet:
    """The set with units owned as a whole if parts of them are recorded.

    That happens when the definition of a custom resource changes and what was owned by item becomes one unit.
    """
    members = set(fields.members)
    children = {}
    for element, below in fields.children.items():
        inner = _inner_shape(shape, element)
        if inner is None:
            children[element] = below
        elif _is_unit(inner):
            members.add(element)
        else:
            children[element] = with_whole_units(inner, below)
    unchanged = len(members) == len(fields.members) and all(
        children[element] is below for element, below in fields.children.items()
    )
    return fields if unchanged else FieldSet(frozenset(members), children)


def _is_unit(shape: Shape) -> bool:
    if shape is DEDUCED:
        return False
    part = shape.map or shape.list
    return part is not None and part.atomic
