"""Quotas: the shape that cluster queues and cohorts share, and the quantities in it.

Quota is counted in whole numbers of 64 bits, CPU in thousandths. A quantity beyond that would be cut to the largest number and admit
what nobody meant to admit, so it is refused here, with its field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.errors import QuantityError
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, duplicate, forbidden, invalid, too_many
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.served.strategy import Object

Errors = Iterator[FieldError]

_MOST: Final = 2**63 - 1
_MOST_IN_ALL: Final = 256
_CPU: Final = "cpu"
_LEAST_WEIGHT: Final = Quantity.parse("1n")


def quantity_at(part: Json, name: str) -> Quantity | None:
    """A quantity, or None where there is none that can be read."""
    value = map_at(part).get(name)
    if value is None or isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return Quantity.parse(str(value))
    except QuantityError:
        return None


def quantity_errors(part: Json, name: str, path: str, *, unit: str = "") -> Errors:
    """An amount of quota: a quantity that is not negative and not too large. `unit` is the resource."""
    value = map_at(part).get(name)
    if value is None:
        return
    found = quantity_at(part, name)
    if found is None:
        yield invalid(f"{path}.{name}", value, "is not a quantity")
    elif found < Quantity.ZERO:
        yield invalid(f"{path}.{name}", str(value), "must be greater than or equal to 0")
    elif (found.milli() if unit == _CPU else found.rounded_up()) > _MOST:
        what = "9223372036854775807m" if unit == _CPU else str(_MOST)
        yield invalid(f"{path}.{name}", str(value), f"must not be greater than {what}")


def weight_errors(obj: Object) -> Errors:
    """The weight of fair sharing: zero, or large enough to divide by."""
    part, path = map_at(obj, "spec", "fairSharing"), "spec.fairSharing"
    yield from quantity_errors(part, "weight", path)
    weight = quantity_at(part, "weight")
    if weight is not None and Quantity.ZERO < weight <= _LEAST_WEIGHT:
        yield invalid(f"{path}.weight", str(weight), "must be 0 or greater than 1n")


def resource_group_errors(obj: Object, *, parent: str, lends_own: bool) -> Errors:
    """What is wrong with the quotas of a queue or a cohort.

    `parent` names the field with what it borrows from. `lends_own`: whether it cannot lend more than its own quota.
    """
    has_parent = bool(text_at(obj, "spec", parent))
    resources: set[str] = set()
    flavors: set[str] = set()
    totals = [0, 0]
    for path, group in each_at(obj, "", "spec", "resourceGroups"):
        covered = [str(name) for name in items_at(group, "coveredResources")]
        totals[0] += len(covered)
        for number, name in enumerate(covered):
            if name in resources:
                yield duplicate(f"{path}.coveredResources[{number}]", name)
            resources.add(name)
        for place, flavor in each_at(group, path, "flavors"):
            totals[1] += 1
            if (name := text_at(flavor, "name")) in flavors:
                yield duplicate(f"{place}.name", name)
            flavors.add(name)
            yield from _flavor_errors(flavor, place, covered)
            for where, quota in each_at(flavor, place, "resources"):
                yield from _quota_errors(
                    quota, where, has_parent=has_parent, parent=parent, lends_own=lends_own
                )
    for name, total in zip(("resources", "flavors"), totals, strict=True):
        if total > _MOST_IN_ALL:
            yield too_many(f"spec.resourceGroups (all {name})", total, _MOST_IN_ALL)


def _flavor_errors(flavor: Object, path: str, covered: list[str]) -> Errors:
    names = [text_at(quota, "name") for quota in items_at(flavor, "resources")]
    if len(names) != len(covered):
        detail = "must have the same number of resources as the coveredResources"
        yield invalid(f"{path}.resources", len(names), detail)
        return
    for number, (name, wanted) in enumerate(zip(names, covered, strict=True)):
        if name != wanted:
            detail = f'must be "{wanted}": the resources are in the order of coveredResources'
            yield invalid(f"{path}.resources[{number}].name", name, detail)


def _quota_errors(
    quota: Object, path: str, *, has_parent: bool, parent: str, lends_own: bool
) -> Errors:
    unit = text_at(quota, "name")
    for name in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        yield from quantity_errors(quota, name, path, unit=unit)
        if name != "nominalQuota" and quota.get(name) is not None and not has_parent:
            yield forbidden(f"{path}.{name}", f"must be nil when {parent} is empty")
    lends, owns = quantity_at(quota, "lendingLimit"), quantity_at(quota, "nominalQuota")
    if lends_own and lends is not None and owns is not None and lends > owns:
        detail = "must be less than or equal to the nominalQuota"
        yield invalid(f"{path}.lendingLimit", str(lends), detail)
