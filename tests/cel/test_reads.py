"""What a selector reads of a device, and the keys made of that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel.environments import device
from drayman.api.resource import Device
from drayman.cel.device import compile_selector
from drayman.cel.errors import EvaluationError
from drayman.cel.reads import Group, Reads

EVERYTHING = Group(everything=True)


def keys(*pairs: tuple[str, str]) -> Group:
    return Group(keys=frozenset(pairs))


def domains(*names: str) -> Group:
    return Group(domains=frozenset(names))


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("true", Reads()),
        ('device.driver == "a"', Reads(driver=True)),
        ("device.allowMultipleAllocations", Reads(allow_multiple_allocations=True)),
        ('device.attributes["d"].a == 1', Reads(attributes=keys(("d", "a")))),
        ('device.attributes.d["a"] == 1', Reads(attributes=keys(("d", "a")))),
        ('has(device.attributes["d"].a)', Reads(attributes=keys(("d", "a")))),
        ('device.attributes["d"].?a.hasValue()', Reads(attributes=keys(("d", "a")))),
        ('"a" in device.attributes["d"]', Reads(attributes=keys(("d", "a")))),
        ('"d" in device.attributes', Reads(attributes=domains("d"))),
        ('size(device.attributes["d"]) > 1', Reads(attributes=domains("d"))),
        ('device.attributes["d"].exists(k, k == "a")', Reads(attributes=domains("d"))),
        (
            'device.attributes["d"].size() > 1 && device.attributes["d"].a == 1',
            Reads(attributes=domains("d")),
        ),
        ("device.attributes.size() > 1", Reads(attributes=EVERYTHING)),
        ("device.attributes[device.driver].a == 1", Reads(driver=True, attributes=EVERYTHING)),
        ('device.capacity["d"].m.isInteger()', Reads(capacity=keys(("d", "m")))),
        (
            'cel.bind(a, device.attributes["d"], a.x == a.y)',
            Reads(attributes=keys(("d", "x"), ("d", "y"))),
        ),
        ("cel.bind(device, {'driver': 1}, device.driver == 1)", Reads()),
        ("[1].all(device, device == 1)", Reads()),
        (
            '(true ? device.attributes["d"] : device.attributes["e"]).x == 1',
            Reads(attributes=domains("d", "e")),
        ),
        ("device == device", Reads(True, True, EVERYTHING, EVERYTHING)),
    ],
)
def test_reads(expression: str, want: Reads) -> None:
    """Constant keys are told apart; anything computed widens the answer."""
    assert compile_selector(expression).reads == want


def test_key_ignores_what_is_not_read() -> None:
    """Devices that agree on what is read have the same key."""
    selector = compile_selector('device.attributes["d"].a == 1')
    one = device(attributes={"a": {"int": 1}, "b": {"int": 1}}, capacity={"m": {"value": "1"}})
    same = device(attributes={"d/a": {"int": 1}, "b": {"string": "x"}})
    other = device(attributes={"a": {"bool": True}})
    assert selector.key("d", one) == selector.key("e", same)
    assert selector.key("d", one) != selector.key("d", other)
    assert selector.key("d", one) != selector.key("e", one)


def test_key_of_capacities_sees_the_spelling() -> None:
    """Equal amounts are told apart where the language can tell them apart."""
    selector = compile_selector('device.capacity["d"].m.isInteger()')
    whole, milli = (
        device(capacity={"m": {"value": "1"}}),
        device(capacity={"m": {"value": "1000m"}}),
    )
    same_verdict = selector.matches("d", whole) == selector.matches("d", milli)
    assert same_verdict or selector.key("d", whole) != selector.key("d", milli)


ATTRIBUTES = st.sampled_from(
    [
        {"int": 1},
        {"int": 2},
        {"bool": True},
        {"string": "a"},
        {"strings": ["a", "b"]},
        {"version": "1.0.0"},
        {"version": "no"},
        {},
    ]
)
DEVICES = st.builds(
    lambda attributes, capacity, shared: device(
        attributes=attributes,
        capacity={name: {"value": value} for name, value in capacity.items()},
        allowMultipleAllocations=shared,
    ),
    st.dictionaries(st.sampled_from(["a", "b", "d/a", "e/a"]), ATTRIBUTES),
    st.dictionaries(st.sampled_from(["m", "e/m"]), st.sampled_from(["1", "1000m", "2Gi"])),
    st.booleans(),
)
SELECTORS = [
    compile_selector(expression)
    for expression in (
        'device.attributes["d"].a == 1',
        'has(device.attributes["d"].a) && device.attributes["d"].a == "a"',
        'device.attributes["d"].exists(k, k == "b")',
        'device.attributes.all(n, size(device.attributes[n]) > 1) || device.driver == "d"',
        'device.attributes["e"].?a.orValue(1) == 1 && !device.allowMultipleAllocations',
        'device.capacity["d"].m.isInteger()',
        '"a" in device.attributes["d"].a',
    )
]


def outcome(selector: object, driver: str, target: Device) -> object:
    try:
        return selector.matches(driver, target)  # type: ignore[attr-defined]
    except EvaluationError as error:
        return str(error)


@given(st.sampled_from(SELECTORS), *[st.sampled_from("de"), DEVICES] * 2)
def test_equal_keys_mean_equal_results(
    selector: object, driver: str, first: Device, other_driver: str, second: Device
) -> None:
    """The key of a device decides the outcome, errors included."""
    if selector.key(driver, first) == selector.key(other_driver, second):  # type: ignore[attr-defined]
        assert outcome(selector, driver, first) == outcome(selector, other_driver, second)
