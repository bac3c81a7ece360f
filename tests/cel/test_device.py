"""Device selectors: lookup, features, what API validation says."""

from __future__ import annotations

import pytest

from calls import counted_calls
from cel.environments import device
from drayman.api.resource import Device
from drayman.cel.device import MAX_COST, ProblemKind, check_selector, compile_selector
from drayman.cel.device_types import Features
from drayman.cel.errors import CompileError, EvaluationError

DRIVER = "gpu.example.com"
GPU = device(
    attributes={
        "model": {"string": "h100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "version": {"version": "2.1.0"},
        "example.com/numa": {"int": 0},
        "tags": {"strings": ["a", "b"]},
    },
    capacity={"memory": {"value": "80Gi"}, "cores": {"value": "500m"}},
)
NO_LISTS = Features(list_attributes=False)


def verdict(expression: str, target: Device = GPU, features: Features = Features()) -> object:  # noqa: B008
    """What `matches` says: a bool, or the error as text. `evaluate` has to agree."""
    selector = compile_selector(expression, features=features)
    exact = selector.evaluate(DRIVER, target)
    try:
        found: object = selector.matches(DRIVER, target)
    except EvaluationError as error:
        found = f"error: {error}"
    assert found == (exact.value if exact.error is None else f"error: {exact.error}")
    return found


def test_default_domain() -> None:
    """A name without a domain belongs to the driver's."""
    assert verdict(f'device.attributes["{DRIVER}"].model == "h100"') is True
    assert verdict('device.attributes["example.com"].numa == 0') is True


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ('device.attributes["nosuch"].y == 1', "error: no such key: y"),
        ('"y" in device.attributes["nosuch"]', False),
        ('has(device.attributes["nosuch"].y)', False),
        ('"nosuch" in device.attributes', False),
        ('"example.com" in device.attributes', True),
        ("size(device.attributes) == 2", True),
        ('device.attributes["nosuch"] == {}', True),
        ("has(device.attributes.nosuch)", True),
        ('device.attributes[?"nosuch"].hasValue()', True),
        ("device.attributes.nosuch.foo == 1", "error: no such key: foo"),
        ("device.attributes.exists(d, d == 'nosuch')", False),
    ],
)
def test_unknown_domains(expression: str, want: object) -> None:
    """A lookup of an unknown domain gives an empty map; only lookups do."""
    assert verdict(expression) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("{d}.version == '2.1.0'", "error: no such overload"),
        ("'2.1.0' == {d}.version", False),
        ("{d}.version != '2.1.0'", True),
        (
            "{d}.version in ['2.1.0']",
            "error: internal error: runtime error: hash of unhashable type",
        ),
        ("{d}.version.compareTo(semver('2.0.0')) > 0", True),
        ("{d}.model > 3", "error: no such overload"),
        ("{d}.model == 3", False),
        ("{d}.index == 3.0", "error: "),
        ("{d}.index < 3u", False),
        ("{d}.ecc", True),
        ("{d}.ecc == 1", False),
        ("{d}.tags.exists(t, t == 'b') && 'a' in {d}.tags && {d}.tags.includes('a')", True),
        ("{d}.model.includes('h100')", True),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))", True),
        ("device.capacity['gpu.example.com'].cores.asApproximateFloat() == 0.5", True),
        ("!device.allowMultipleAllocations", True),
    ],
)
def test_values(expression: str, want: object) -> None:
    """Attributes have the types that the API gives them; comparing others is false or an error."""
    domain = f'device.attributes["{DRIVER}"]'
    if want == "error: ":
        with pytest.raises(CompileError):
            compile_selector(expression.replace("{d}.index", "3"))
        return
    assert verdict(expression.replace("{d}", domain)) == want


@pytest.mark.parametrize(
    ("attribute", "features", "message"),
    [
        pytest.param(
            {"version": "x"}, Features(), "attribute bad: parse semantic version", id="no version"
        ),
        pytest.param({}, Features(), "attribute bad: unsupported attribute value", id="no value"),
        pytest.param(
            {"strings": ["a"]}, NO_LISTS, "attribute bad: unsupported attribute value", id="list"
        ),
        pytest.param(
            {"versions": ["1.0.0", "x"]}, Features(), "parse semantic version", id="versions"
        ),
    ],
)
def test_broken_devices(attribute: dict[str, object], features: Features, message: str) -> None:
    """An attribute that cannot be converted makes every expression fail, and the device's key tells."""
    broken = device(attributes={"good": {"int": 1}, "bad": attribute})
    selector = compile_selector("true", features=features)
    with pytest.raises(EvaluationError, match=message):
        selector.matches(DRIVER, broken)
    assert selector.key(DRIVER, broken) != selector.key(DRIVER, device())


def test_result_has_to_be_bool() -> None:
    """An attribute that turns out to be no bool is an error, not a verdict."""
    assert verdict(f'device.attributes["{DRIVER}"].model') == (
        "error: CEL result of type string could not be converted to bool"
    )


def test_lists_are_behind_a_gate() -> None:
    """Without the gate attributes are no ranges, and new expressions have no `includes`."""
    exists = f'device.attributes["{DRIVER}"].tags.exists(t, true)'
    with pytest.raises(CompileError, match="cannot be range of a comprehension"):
        compile_selector(exists, features=NO_LISTS)
    includes = f'device.attributes["{DRIVER}"].model.includes("h100")'
    assert check_selector(includes, stored=False, features=NO_LISTS) is not None
    assert check_selector(includes, stored=True, features=NO_LISTS) is None


def test_consumable_capacity_is_behind_a_gate() -> None:
    """Without the gate only stored expressions know `allowMultipleAllocations`."""
    features = Features(consumable_capacity=False)
    expression = "device.allowMultipleAllocations"
    assert check_selector(expression, stored=False, features=features) is not None
    assert check_selector(expression, stored=True, features=features) is None


@pytest.mark.parametrize(
    ("expression", "kind", "detail"),
    [
        pytest.param("'" + "é" * 5120 + "'", ProblemKind.TOO_LONG, "10240 bytes", id="too long"),
        pytest.param("", ProblemKind.INVALID, "compilation failed: ERROR: <input>:1:0", id="empty"),
        pytest.param(
            "device.name == ''", ProblemKind.INVALID, "undefined field 'name'", id="field"
        ),
        pytest.param(
            "device.driver",
            ProblemKind.INVALID,
            "must evaluate to bool or the unknown type",
            id="string",
        ),
        pytest.param(
            "lists.range(1000).all(x, lists.range(1000).all(y, x < y))",
            ProblemKind.FORBIDDEN,
            "too complex, exceeds cost limit",
            id="too expensive",
        ),
        pytest.param(
            "int('x') == 0", ProblemKind.INTERNAL, "program instantiation failed", id="constant"
        ),
    ],
)
def test_problems(expression: str, kind: ProblemKind, detail: str) -> None:
    """API validation gets the kind of error that Kubernetes reports, and its words."""
    problem = check_selector(expression, stored=False)
    assert problem is not None
    assert problem.kind is kind
    assert detail in problem.detail


def test_no_problem() -> None:
    """A selector that is fine has no problem."""
    assert check_selector('device.driver == "a"', stored=False) is None


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("true", 0),
        ('device.driver == ""', 2),
        ('device.driver == "dra.example.com"', 4),
        ('"d" in device.attributes', 3),
        ('device.attributes["d"].name', 4),
        ('device.attributes["d"].name > 0', 5),
        ('device.attributes["d"].name == "fish"', 5),
        ('device.attributes["d"].name.isGreaterThan(semver("0.0.1"))', 6),
        ('device.capacity["d"].name.isGreaterThan(quantity("1Ki"))', 6),
        ('device.attributes["d"].name.includes("a")', 52),
        ('1 in device.attributes["d"].name', 68),
        ("device.attributes.exists_one(x, x == 'dra.example.com')", 164),
        ("device.attributes['d'].exists_one(x, x == 'a')", 133),
    ],
)
def test_worst_cases(expression: str, want: int) -> None:
    """Estimates are the ones that Kubernetes publishes."""
    assert compile_selector(expression).max_cost == want


def test_actual_costs_stay_below_the_estimate() -> None:
    """The worst case covers what happens."""
    for expression in (
        f'device.attributes["{DRIVER}"].tags.all(t, t.startsWith("a"))',
        f'device.attributes["{DRIVER}"].model.split("").size() == 4',
        "device.attributes.all(d, device.attributes[d].all(k, k.size() > 0))",
    ):
        selector = compile_selector(expression)
        assert 0 < selector.evaluate(DRIVER, GPU).cost <= selector.max_cost <= MAX_COST


def test_a_selector_that_was_found_sound_is_not_compiled_again() -> None:
    """Claims from one template repeat hundreds of selectors, and each of them is checked when each claim is made."""
    expression = "device.driver.matches('^(a|b)+known$') && size(device.driver) > 3"
    with counted_calls() as first:
        assert check_selector(expression, stored=False) is None
    with counted_calls() as second:
        assert check_selector(expression, stored=False) is None
    assert second.count * 20 < first.count
    newer = "device.attributes['a'].b.includes('x')"
    assert check_selector(newer, stored=True) is None
    assert check_selector(newer, stored=False, features=Features(list_attributes=False)) is not None
