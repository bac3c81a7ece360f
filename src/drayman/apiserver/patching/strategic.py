"""Strategic merge patch: a merge patch that knows which lists are sets of named things.

Null removes a member, objects merge, lists with a merge key merge item by item, other lists replace. A patch may also give
directives: `$patch: delete` or `replace` on an object or a list item, `$retainKeys` to drop the members it does not name,
`$deleteFromPrimitiveList/<list>` and `$setElementOrder/<list>`.

The real server answers every patch it cannot interpret with 500. Here that is done for the two cases that clients were seen to
meet, a missing merge key and an unknown directive; the rest are 400.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from drayman.api.schema import Field, ListOf, MapOf, Message, Type
from drayman.api.struct import Json
from drayman.apiserver.patching.go_text import plain, type_name
from drayman.apiserver.patching.merge_patch import without_nulls
from drayman.apiserver.patching.strategic_order import arranged, check_order, identity
from drayman.apiserver.protocol.errors import StatusError, bad_request, internal, rejected_patch

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"


def apply_strategic_merge(message: Message, obj: dict[str, Json], patch: Json) -> dict[str, Json]:
    """The patched object; neither argument is changed. Raises `StatusError` 400, 422 or 500."""
    if not isinstance(patch, dict):
        kind = {list: "array", str: "string", bool: "bool"}.get(type(patch), "number")
        raise bad_request(
            f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merge_maps(message, obj, patch)


def _merge_maps(type_: Type, original: dict[str, Json], patch: dict[str, Json]) -> dict[str, Json]:
    if DIRECTIVE in patch:
        return _directed(patch)
    changes = dict(patch)
    result = _retained(original, changes)
    for name in [name for name in changes if name.startswith(SET_ORDER)]:
        _merge_in_order(type_, result, changes, name)
    for name, value in changes.items():
        if name.startswith(DELETE_FROM):
            _delete_scalars(result, _target(name, "primitive list"), value)
        else:
            _merge_member(type_, result, name, value)
    return result


def _directed(patch: dict[str, Json]) -> dict[str, Json]:
    """What an object becomes through its own directive."""
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _unknown_directive(patch: dict[str, Json]) -> StatusError:
    return internal(f"unknown patch type: {plain(patch[DIRECTIVE])} in map: {plain(patch)}")


def _retained(original: dict[str, Json], changes: dict[str, Json]) -> dict[str, Json]:
    """A copy of the object with the members `$retainKeys` names, which must be all that the patch sets."""
    if RETAIN_KEYS not in changes:
        return dict(original)
    keys = changes.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise bad_request("invalid patch format of retainKeys")
    retained = {key for key in keys if isinstance(key, str)}
    for name, value in changes.items():
        is_directive = name.startswith((DELETE_FROM, SET_ORDER))
        if value is not None and not is_directive and name not in retained:
            raise bad_request("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in retained}


def _merge_member(type_: Type, result: dict[str, Json], name: str, value: Json) -> None:
    if value is None:
        result.pop(name, None)
        return
    current = result.get(name)
    if isinstance(current, dict) and isinstance(value, dict):
        inner, field = _member_type(type_, name)
        if field is not None and "replace" in field.merge_strategies:
            result[name] = value
        else:
            result[name] = _merge_maps(inner, current, value)
    elif isinstance(current, list) and isinstance(value, list):
        inner, field = _member_type(type_, name)
        result[name] = _merge_lists(inner, field, current, value)
    else:
        cleaned = _without_directives(without_nulls(value))
        if cleaned is None:
            result.pop(name, None)
        else:
            result[name] = cleaned


def _member_type(type_: Type, name: str) -> tuple[Type, Field | None]:
    """The type of a member to merge, and its field."""
    if isinstance(type_, Message):
        field = type_.fields.get(name)
        if field is None:
            raise bad_request(
                f'unable to find api field in struct {type_.name} for the json field "{name}"'
            )
        return field.type, field
    if isinstance(type_, MapOf):
        raise bad_request("merging an object in json but data type is not struct, instead is: map")
    native = type_.native.rpartition(".")[2]
    raise bad_request(f'unable to find api field in struct {native} for the json field "{name}"')


def _merge_lists(
    type_: Type, field: Field | None, current: list[Json], patch: list[Json]
) -> list[Json]:
    if field is None or "merge" not in field.merge_strategies:
        return patch
    if not current and not patch:
        return current
    if not _holds_objects(current, patch):
        merged = list(dict.fromkeys([*current, *patch]))
        return arranged(merged, patch, current, None)
    key = field.merge_key
    item_type = type_.item if isinstance(type_, ListOf) else type_
    if key is None:
        raise bad_request("cannot merge lists without merge key for struct")
    kept, changes, replaced = _special_items(current, patch, key)
    if replaced:
        return kept
    return arranged(_merge_items(item_type, kept, changes, key), changes, kept, key)


def _holds_objects(*lists: list[Json]) -> bool:
    """Whether the items are objects rather than scalars. They must all be of one kind."""
    kinds = {type_name(item) for items in lists for item in items}
    if not kinds:
        raise bad_request("no elements in any of the given slices")
    if type_name([]) in kinds:
        raise rejected_patch()
    if len(kinds) > 1:
        raise bad_request(f"list element types are not identical: {plain(list(lists))}")
    return type_name({}) in kinds


def _special_items(
    current: list[Json], patch: list[Json], key: str
) -> tuple[list[Json], list[Json], bool]:
    """Carry out the directives among the items: returns the rest of the list, the other items, and whether these replace it."""
    changes, deleted, replaced = [], set(), False
    for item in patch:
        if DIRECTIVE not in item:
            changes.append(item)
        elif item[DIRECTIVE] == "delete":
            deleted.add(identity(item, key))
        elif item[DIRECTIVE] == "replace":
            replaced = True
        elif item[DIRECTIVE] == "merge":
            raise bad_request("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item)
    if replaced:
        return changes, [], True
    kept = [other for other in current if key not in other or identity(other, key) not in deleted]
    return kept, changes, False


def _merge_items(
    type_: Type, current: list[Json], changes: list[Json], key: str
) -> list[dict[str, Json]]:
    result = list(current)
    places: dict[Hashable, int] = {}
    for index, item in enumerate(current):
        if key in item:
            places.setdefault(identity(item, key), index)
    for item in changes:
        place = places.setdefault(identity(item, key), len(result))
        if place == len(result):
            result.append(item)
        else:
            result[place] = _merge_maps(type_, result[place], item)
    return result


def _merge_in_order(
    type_: Type, result: dict[str, Json], changes: dict[str, Json], directive: str
) -> None:
    """Merge a list and put it into the order a directive gives."""
    order = changes.pop(directive)
    if not isinstance(order, list):
        raise bad_request(f"expected a []interface {{}}, but received a {type_name(order)}")
    name = _target(directive, "setElementOrder list")
    inner, field = _member_type(type_, name)
    current, patch = result.get(name), changes.pop(name, None)
    for value in (current, patch):
        if value is not None and not isinstance(value, list):
            raise bad_request(f"expected a []interface {{}}, but received a {type_name(value)}")
    key = None if field is None else field.merge_key
    check_order(patch or [], order, key)
    if patch is None and current is None:
        return
    merged: Json
    if patch is None:
        merged = current
    elif current is None:
        merged = _without_directives(patch)
    else:
        merged = _merge_lists(inner, field, current, patch)
    _holds_objects(current or [], patch or [])
    result[name] = arranged(merged, order, current or [], key)


def _target(directive: str, what: str) -> str:
    """The list a directive is about."""
    _, slash, name = directive.partition("/")
    if not slash:
        raise bad_request(f"invalid patch format of {what}")
    return name


def _delete_scalars(result: dict[str, Json], name: str, values: Json) -> None:
    current = result.get(name)
    if isinstance(current, list) and isinstance(values, list):
        deleted = {identity(value) for value in values}
        result[name] = [item for item in current if identity(item) not in deleted]


def _without_directives(value: Json) -> Json:
    """A value that had nothing to merge with, without objects that are only directives. None if it is one of them."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return None
        members = {name: _without_directives(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member is not None}
    if isinstance(value, list):
        items = [_without_directives(item) for item in value]
        return [item for item in items if item is not None]
    return value
