"""Where the reference implementation does what nobody would guess, and stored expressions may depend on it."""

from __future__ import annotations

import pytest

from cel.environments import device
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError, CostLimitError, EvaluationError

GPU = device(
    attributes={"model": {"string": "h100"}, "driver": {"version": "2.1.0"}},
    capacity={"memory": {"value": "80Gi"}},
)
DRIVER = "gpu.example.com"


def outcome(expression: str) -> tuple[bool | str, int]:
    """The verdict or the error, and the cost."""
    selector = compile_selector(expression)
    exact = selector.evaluate(DRIVER, GPU)
    try:
        verdict: bool | None = selector.matches(DRIVER, GPU)
    except EvaluationError:
        verdict = None
    assert verdict == (None if exact.error is not None else exact.value)
    return str(exact.error) if exact.error is not None else exact.value is True, exact.cost


@pytest.mark.parametrize(
    ("expression", "message", "cost"),
    [
        pytest.param('dyn(b"a") in ["x"] || true', "unhashable", 0, id="bytes in a constant list"),
        pytest.param("dyn(1).distinct() == [] || true", "not a list", 0, id="distinct of an int"),
        pytest.param(
            "[1].all(x, dyn(1).distinct() == [] || true)", "not a list", 3, id="in a loop"
        ),
        pytest.param('[[1]].flatten(dyn("a")) == [] || true', "not an int", 0, id="flatten depth"),
        pytest.param(
            '{dyn(semver("1.0.0")): 1} == {} || true', "unhashable", 2, id="key that has no hash"
        ),
    ],
)
def test_breakdowns_are_not_absorbed(expression: str, message: str, cost: int) -> None:
    """A breakdown of the reference implementation ends the evaluation, whatever `||` would make of an error."""
    found, charged = outcome(expression)
    assert isinstance(found, str)
    assert found.startswith("internal error: ")
    assert message in found
    assert charged == cost


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("CAPACITY, o.hasValue()", True, id="it is there"),
        pytest.param("CAPACITY, o.value().isInteger()", "unsupported conversion", id="a quantity"),
        pytest.param('CAPACITY, o.orValue(quantity("1")).isInteger()', "unsupported", id="orValue"),
        pytest.param("CAPACITY, o == CAPACITY", "unsupported conversion", id="compared"),
        pytest.param("VERSION, o.optMap(v, v.major() == 2).orValue(false)", "unsupp", id="semver"),
        pytest.param('MODEL, o.value() == "h100"', True, id="a string is fine"),
        pytest.param(
            "optional.of(optional.of(1)), dyn(o.value()) == 1", True, id="nested optionals"
        ),
        pytest.param(
            'optional.of(int), dyn(o.value()) == "int"', True, id="a type becomes its name"
        ),
        pytest.param("device.?attributes, o.?x.hasValue()", False, id="domains are a plain map"),
    ],
)
def test_optionals_in_variables(expression: str, want: bool | str) -> None:
    """An optional that is read from a variable has been through the host language, which knows no library types."""
    shown = (
        expression.replace("CAPACITY", f'device.capacity["{DRIVER}"].?memory')
        .replace("VERSION", f'device.attributes["{DRIVER}"].?driver')
        .replace("MODEL", f'device.attributes["{DRIVER}"].?model')
    )
    found, _ = outcome(f"cel.bind(o, {shown})")
    if isinstance(want, bool):
        assert found is want
    else:
        assert isinstance(found, str)
        assert want in found


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("dyn(optional.of(true))", True),
        ("dyn(optional.of(optional.of(false)))", False),
        ("dyn(optional.none())", "CEL result of type optional_type could not be converted to bool"),
    ],
)
def test_optional_verdicts(expression: str, want: bool | str) -> None:
    """A result that is an optional bool counts as that bool."""
    assert outcome(expression)[0] == want


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("dyn([1, 2]).flatten() == [1, 2]", 14),
        ("dyn([1, 2]).flatten(3) == [1, 2]", 18),
        ('-dyn(duration("1s")) == duration("-1s")', 2),
        ("{[1]: 2}.map(k, k) == [[1]]", 15),
        ('duration("1s") in {duration("1s"): 1}', 1),
        ("[1].all(x, .x == 1)", 6),
        ("optional.ofNonZeroValue(optional.none()).hasValue()", 3),
        ("optional.ofNonZeroValue(device.attributes).hasValue()", 4),
        ('timestamp("9999-12-31T23:59:59Z").getFullYear("Asia/Tokyo") == 10000', 2),
        ('timestamp("0001-01-01T00:00:00Z").getFullYear("-08:00") == 0', 2),
        ('timestamp("9999-12-31T23:59:59Z").getDayOfWeek("+14:00") == 6', 2),
        ('quantity("1").sub(-9223372036854775808).asInteger() < 0', 4),
        ('timestamp("2024-01-02T03:04:05Z").getDayOfMonth("608:00") == 26', 2),
        ('timestamp("9999-12-31T23:59:59Z").getFullYear("+308:00") == 10000', 2),
        ('semver("18446744073709551615.0.0").major() == -1', 5),
        ('double("1_000.5") == 1000.5', 1),
        ('double("0x_1_ap1") == 52.0', 1),
        ('"%e".format([3.14]) == "3.140000×10⁰⁰"', 3),
    ],
)
def test_what_works_all_the_same(expression: str, cost: int) -> None:
    """What looks like a mistake has a value, and the cost that upstream charges."""
    assert outcome(expression) == (True, cost)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[int].exists(t, t == int)", "reference to undefined type: t"),
        ("cel.bind(t, type(1), t == int)", "reference to undefined type: t"),
        ("[1].all(x, __result__)", "undeclared reference to '__result__'"),
        ("[1].all(__result__, true)", "overwrites accumulator"),
        ('-duration("1s") == duration("-1s")', "no matching overload"),
    ],
)
def test_what_does_not_compile(expression: str, message: str) -> None:
    """Variables that hold types, hidden names, and overloads for dynamic values only."""
    with pytest.raises(CompileError, match=message):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("[[1], [2], [3]].flatten(-1) == [1]", 9),
        ("[1, 2].slice(0, 100) == []", 12),
        ("dyn([1, 2])[18446744073709551615u] == 1", 3),
        ("dyn([1, 2])[?9223372036854775808.0] == optional.none()", 3),
    ],
)
def test_costs_of_failures(expression: str, cost: int) -> None:
    """What fails costs what upstream charges for it."""
    found, charged = outcome(expression)
    assert (type(found), charged) == (str, cost)


def test_absurd_depth_exceeds_the_limit() -> None:
    """The cost of flattening grows with the depth asked for."""
    error = compile_selector("[[1]].flatten(9223372036854775807) == []").evaluate(DRIVER, GPU).error
    assert isinstance(error, CostLimitError)
