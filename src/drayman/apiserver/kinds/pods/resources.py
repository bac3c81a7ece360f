"""Amounts of resources that containers ask for: their names, their values, and limits against requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api import formats
from drayman.api.errors import QuantityError
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.device_class import is_extended_resource_name
from drayman.api.validation.field_errors import forbidden, invalid, invalid_each, required
from drayman.apiserver.kinds.checks import NOT_NEGATIVE, CheckText
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.kinds.rules import Errors

COMPUTE: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"
_CONTAINER_RESOURCES: Final = (*COMPUTE, "ephemeral-storage")
QUOTA_RESOURCES: Final = frozenset(
    (
        *(
            f"{prefix}{name}"
            for prefix in ("", "requests.", "limits.")
            for name in _CONTAINER_RESOURCES
        ),
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "requests.storage",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    )
)
"""What quotas can limit besides resources with a domain in their names."""
_MILLI: Final = 1000


def is_native_resource(name: str) -> bool:
    """Whether a resource is Kubernetes' own. Only those can be overcommitted."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota_huge_pages(name: str) -> bool:
    return is_huge_pages(name.removeprefix("requests."))


def can_overcommit(name: str) -> bool:
    """Whether a resource can be overcommitted."""
    return is_native_resource(name) and not is_huge_pages(name)


def resource_name_problems(name: str) -> formats.Problems:
    """Why a name is not a valid resource name."""
    problems = formats.label_key_problems(name)
    standard = name in QUOTA_RESOURCES or name == "storage" or is_quota_huge_pages(name)
    if not problems and "/" not in name and not standard:
        return ("must be a standard resource type or fully qualified",)
    return problems


def container_resource_name(name: str, path: str) -> Errors:
    """The name of a resource that a container can request."""
    yield from invalid_each(path, name, resource_name_problems(name))
    if "/" in name:
        if not is_native_resource(name) and not is_extended_resource_name(name):
            yield invalid(path, name, "doesn't follow extended resource name standard")
    elif name not in _CONTAINER_RESOURCES and not is_huge_pages(name):
        yield invalid(path, name, "must be a standard resource for containers")


def quantity_value(name: str, amount: Quantity, path: str) -> Errors:
    if amount < Quantity(0):
        yield invalid(path, str(amount), NOT_NEGATIVE)
    if is_extended_resource_name(name) and amount.milli() % _MILLI:
        yield invalid(path, str(amount), "must be an integer")


def parse_amounts(amounts: Mapping[str, Json]) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(amount)) for name, amount in amounts.items()}


def container_resources(resources: Json, path: str) -> Errors:
    """Limits and requests of one container. References to claims are checked with the pod's claims."""
    yield from requirements(resources, path, container_resource_name)


def requirements(resources: Json, path: str, check_name: CheckText) -> Errors:
    """Limits and requests, with resource names checked by `check_name`."""
    limits = parse_amounts(map_at(resources, "limits"))
    requests = parse_amounts(map_at(resources, "requests"))
    for name, amount in limits.items():
        yield from _amount(name, amount, f"{path}.limits[{name}]", check_name)
    for name, amount in requests.items():
        yield from _amount(name, amount, f"{path}.requests[{name}]", check_name)
        yield from _within_limit(name, amount, limits.get(name), path)
    names = limits.keys() | requests.keys()
    if any(map(is_huge_pages, names)) and not names & set(COMPUTE):
        yield forbidden(path, "HugePages require cpu or memory")


def _amount(name: str, amount: Quantity, path: str, check_name: CheckText) -> Errors:
    yield from check_name(name, path)
    yield from quantity_value(name, amount, path)
    if is_huge_pages(name) and not _is_whole_pages(name, amount):
        yield invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")


def _within_limit(name: str, amount: Quantity, limit: Quantity | None, path: str) -> Errors:
    if limit is None:
        if not can_overcommit(name):
            detail = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", detail)
    elif amount != limit and not can_overcommit(name):
        detail = f"must be equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", str(amount), detail)
    elif limit < amount:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", str(amount), detail)


def _is_whole_pages(name: str, amount: Quantity) -> bool:
    """Whether an amount is a whole number of pages, whose size is part of the name."""
    try:
        size = Quantity.parse(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return False
    if size <= Quantity(0) or size.milli() % _MILLI:
        return False
    return amount.rounded_up() % size.rounded_up() == 0
