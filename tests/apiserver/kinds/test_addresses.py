"""IPAddresses and ServiceCIDRs: what is refused, and what may change."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.circumstances import NOW, created, make_context, refusals, resource_of
from drayman.apiserver.served.strategy import Object

GROUP = "networking.k8s.io"
ADDRESS, RANGE = resource_of(GROUP, "IPAddress"), resource_of(GROUP, "ServiceCIDR")
SERVICE = {"resource": "services", "namespace": "default", "name": "web"}


def address(name: str, parent: dict[str, str] | None) -> Object:
    spec = {} if parent is None else {"parentRef": parent}
    return created(ADDRESS, {"metadata": {"name": name}, "spec": spec}, make_context())


def ranges(*cidrs: str) -> Object:
    body = {"metadata": {"name": "x"}, "spec": {"cidrs": list(cidrs)}}
    return created(RANGE, body, make_context())


NAME, PARENT = "metadata.name", "spec.parentRef"
ADDRESSES: dict[str, tuple[str, Any, set[tuple[str, str]]]] = {
    "version 4": ("10.0.0.1", SERVICE, set()),
    "version 6": ("2001:db8::1", SERVICE, set()),
    "no address": ("web", SERVICE, {(NAME, "Invalid")}),
    "not in its only form": ("2001:DB8::1", SERVICE, {(NAME, "Invalid")}),
    "one family in the form of the other": ("::ffff:10.0.0.1", SERVICE, {(NAME, "Invalid")}),
    "nobody's": ("10.0.0.1", None, {(PARENT, "Required")}),
    "half a parent": (
        "10.0.0.1",
        {"group": "No Group", "resource": "a/b"},
        {(f"{PARENT}.group", "Invalid"), (f"{PARENT}.resource", "Invalid"), (f"{PARENT}.name", "Required")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ADDRESSES)
def test_addresses(case: str) -> None:
    """An address is named by itself and belongs to somebody."""
    name, parent, causes = ADDRESSES[case]
    errors = ADDRESS.strategy.validate(address(name, parent), make_context())
    assert refusals(errors) == causes


def test_an_address_stays_with_its_parent() -> None:
    """It cannot be given to another."""
    old, new = address("10.0.0.1", SERVICE), address("10.0.0.1", {**SERVICE, "name": "db"})
    assert refusals(ADDRESS.strategy.validate_update(new, old, make_context())) == {
        (PARENT, "Invalid")
    }


def test_the_row_of_an_address_names_its_parent() -> None:
    """Resource, namespace and name."""
    row = {
        column.name: column.cell(address("10.0.0.1", SERVICE), NOW) for column in ADDRESS.columns
    }
    assert row["ParentRef"] == "services/default/web"


CIDRS: dict[str, tuple[tuple[str, ...], set[tuple[str, str]]]] = {
    "one": (("10.0.0.0/24",), set()),
    "one of each family": (("10.0.0.0/24", "2001:db8::/64"), set()),
    "none": ((), {("spec.cidrs", "Required")}),
    "three": (("10.0.0.0/24", "2001:db8::/64", "10.1.0.0/24"), {("spec.cidrs", "Invalid")}),
    "two of a family": (("10.0.0.0/24", "10.1.0.0/24"), {("spec.cidrs", "Invalid")}),
    "an address": (("10.0.0.1",), {("spec.cidrs[0]", "Invalid")}),
    "bits beyond the prefix": (("10.0.0.1/24",), {("spec.cidrs[0]", "Invalid")}),
    "not in its only form": (("2001:DB8::/64",), {("spec.cidrs[0]", "Invalid")}),
    "no range at all": (("all",), {("spec.cidrs[0]", "Invalid")}),
}


@pytest.mark.parametrize("case", CIDRS)
def test_ranges(case: str) -> None:
    """One range, or one of each family."""
    cidrs, causes = CIDRS[case]
    assert refusals(RANGE.strategy.validate(ranges(*cidrs), make_context())) == causes


UPDATES: dict[str, tuple[tuple[str, ...], set[tuple[str, str]]]] = {
    "the same": (("10.0.0.0/24",), set()),
    "the other family joins": (("10.0.0.0/24", "2001:db8::/64"), set()),
    "the same family joins": (("10.0.0.0/24", "10.1.0.0/24"), {("spec.cidrs", "Invalid")}),
    "another": (("10.1.0.0/24",), {("spec.cidrs[0]", "Invalid")}),
    "none": ((), {("spec.cidrs", "Invalid")}),
}


@pytest.mark.parametrize("case", UPDATES)
def test_ranges_only_grow_by_the_other_family(case: str) -> None:
    """Addresses are given out of a range, so it stays."""
    cidrs, causes = UPDATES[case]
    errors = RANGE.strategy.validate_update(ranges(*cidrs), ranges("10.0.0.0/24"), make_context())
    assert refusals(errors) == causes
