"""Values that selectors want and no device has, and what devices have in their place."""

from __future__ import annotations

import pytest

from drayman.explain.answer import Value
from drayman.explain.conditions import comparison_of
from explain.town import GPU, NIC, Town
from oracle.build import capacity, claim, device, exactly

MODEL = f'device.attributes["{GPU}"].model'
CORES = f'device.attributes["{GPU}"].cores'
MEMORY = f'device.capacity["{GPU}"].memory'
DRIVER = f'device.attributes["{GPU}"].driverVersion'


def gpu(name: str, model: str, cores: int, memory: str, version: str) -> dict[str, object]:
    attrs = {"model": model, "cores": cores, "driverVersion": {"version": version}}
    return device(name, attrs=attrs, capacity={"memory": capacity(memory)})


DEVICES = [
    gpu("d0", "1g.10gb", 14, "10Gi", "535.1.0"),
    gpu("d1", "4g.40gb", 60, "40Gi", "550.54.0"),
    gpu("d2", "4g.40gb", 60, "40Gi", "550.54.0"),
    gpu("d3", "7g.80gb", 132, "80Gi", "550.54.0"),
]


def town() -> Town:
    nic = device("n0", attrs={"model": "CX7"})
    return Town().node("n0", DEVICES).node("n1", DEVICES[:1]).node("n2", [nic], driver=NIC)


def values(*select: str) -> tuple[Value, ...]:
    return town().wants(claim(exactly("gpu", 1, select=list(select)))).explain().values


CASES = [
    ("equal", f'{MODEL} == "5g.50gb"', '== "5g.50gb"', "4g.40gb 2, 7g.80gb 1, 1g.10gb 2"),
    ("mirrored", f'"2g.10gb" == {MODEL}', '== "2g.10gb"', "1g.10gb 2, 4g.40gb 2, 7g.80gb 1"),
    ("a list", f'{MODEL} in ["8g.80gb", "x"]', 'in ["8g.80gb", "x"]', "7g.80gb 1, 4g.40gb 2, 1g.10gb 2"),
    ("alternatives", f'({MODEL} == "7g.8gb" || {MODEL} == "x")', 'in ["7g.8gb", "x"]', "7g.80gb 1, 1g.10gb 2, 4g.40gb 2"),
    ("a beginning", f'{MODEL}.startsWith("5g")', 'startsWith "5g"', "4g.40gb 2, 7g.80gb 1, 1g.10gb 2"),
    ("a part", f"{MODEL}.contains('90gb')", "contains '90gb'", "7g.80gb 1, 4g.40gb 2, 1g.10gb 2"),
    ("with a default", f'device.attributes["{GPU}"].?model.orValue("") == "7g.40gb"', '== "7g.40gb"', "4g.40gb 2, 7g.80gb 1, 1g.10gb 2"),
    ("a number", f"{CORES} == 64", "== 64", "60 2, 14 2, 132 1"),
    ("a lower bound", f"{CORES} >= 200", ">= 200", "132 1, 60 2, 14 2"),
    ("an upper bound", f"{CORES} < 10", "< 10", "14 2, 60 2, 132 1"),
    ("a quantity", f'{MEMORY}.compareTo(quantity("200Gi")) >= 0', '>= "200Gi"', "80Gi 1, 40Gi 2, 10Gi 2"),
    ("more than a quantity", f'{MEMORY}.isGreaterThan(quantity("80Gi"))', '> "80Gi"', "80Gi 1, 40Gi 2, 10Gi 2"),
    ("the other way round", f'quantity("9Gi").compareTo({MEMORY}) > 0', '< "9Gi"', "10Gi 2, 40Gi 2, 80Gi 1"),
    ("a version", f'{DRIVER}.compareTo(semver("560.0.0")) >= 0', '>= "560.0.0"', "550.54.0 3, 535.1.0 2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("select", "wanted", "existing"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_values_there_are_come_nearest_first(select: str, wanted: str, existing: str) -> None:
    """Text by typing errors and the numbers in it, numbers by their difference, bounds from what comes furthest; with their devices."""
    (found,) = values(select)
    assert (found.claim, found.request, found.selector) == ("c0", "gpu", select)
    assert found.wanted == wanted
    assert ", ".join(f"{value} {number}" for value, number in found.existing) == existing


def test_only_devices_that_would_do_otherwise_count() -> None:
    """The condition at fault is the one without which something passes, and what counts is what passes the others."""
    (found,) = values(f'{CORES} > 50 && {MODEL} == "1g.10gb"', "true")[1:]
    assert (found.condition, found.among) == (f'{MODEL} == "1g.10gb"', "matching")
    assert found.existing == (("4g.40gb", 2), ("7g.80gb", 1))


def test_where_two_values_are_wrong_both_are_told() -> None:
    """Of all devices, as none passes the rest."""
    found = values(f'{MODEL} == "9g.90gb" && {CORES} == 500')
    assert [(each.condition, each.among) for each in found] == [
        (f'{MODEL} == "9g.90gb"', "all"),
        (f"{CORES} == 500", "all"),
    ]
    assert ("CX7", 1) not in found[0].existing


@pytest.mark.parametrize(
    "select",
    [
        pytest.param(f'{MODEL} == "4g.40gb"', id="a value that is there"),
        pytest.param(f'device.attributes["{GPU}"].modle == "4g.40gb"', id="no such attribute"),
        pytest.param(f'{CORES} == "60"', id="another type"),
        pytest.param(f'{MODEL}.matches("^9g")', id="a pattern"),
        pytest.param(f'device.driver == "{NIC}"', id="another driver"),
        pytest.param("false", id="no comparison"),
    ],
)
def test_what_is_no_wrong_value(select: str) -> None:
    """Nothing is said where values are not what is wrong, or not to be compared."""
    crowd = town()
    crowd.wants(claim(exactly("gpu", 30, select=[select])))
    assert crowd.explain().values == ()


def test_a_value_as_long_as_an_expression_may_be_is_compared_too() -> None:
    """Also one that looks like a number of thousands of digits."""
    (found,) = values(f'{MODEL} == "{"7" * 5000}"')
    assert len(found.existing) == 3


def test_a_misspelt_driver_is_told() -> None:
    """One that is nearly called like that."""
    crowd = town()
    crowd.classes.append(
        {"metadata": {"name": "wrong"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.exmaple.com"'}}]}}
    )  # fmt: skip
    (found,) = crowd.wants(claim(exactly("gpu", 1, cls="wrong"))).explain().values
    assert (found.what, found.existing) == ("driver", ((GPU, 5),))


@pytest.mark.parametrize(
    "condition", ["true", "size(device.driver) > 3", f"{MODEL} == device.driver", f"{CORES} == -1"]
)
def test_what_is_no_comparison_with_a_value(condition: str) -> None:
    """Only an attribute, a capacity or the driver, compared with values that are written out."""
    assert comparison_of(condition, list_attributes=False) is None
