"""Generated code and the interpreter agree on random expressions and devices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cel.environments import device
from drayman.api.resource import Device
from drayman.cel import CompileError, EvaluationError, Features, compile_selector
from drayman.cel.device import environment
from drayman.cel.device_values import KNOWN_CLASSES, device_value
from drayman.cel.fastpath import Bail

ROOT = 'device.attributes["d"]'
ATOMS = st.sampled_from(
    [
        "1", "2u", "1.5", "'a'", "''", "true", "false", "null", "[1, 2]", "['a']", "[]", "{'a': 1}",
        "device.driver", "device.allowMultipleAllocations", f"{ROOT}.a", f"{ROOT}.b", f"{ROOT}['c']",
        f"{ROOT}.v", f"{ROOT}.l", f"{ROOT}.?a.orValue(1)", f"{ROOT}.?zz.orValue('a')", f"{ROOT}[?'l']",
        'device.attributes["nosuch"].x', 'device.capacity["d"].m', "device.attributes", ROOT,
        "quantity('1Gi')", "semver('1.0.0')", "device.attributes.d.a", "duration('1s')", "dyn(1)",
    ]
)  # fmt: skip


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from("== != < <= > >= && || + - * / % in".split())
    binary = st.builds("({} {} {})".format, inner, operators, inner)
    unary = st.builds(
        "{}({})".format, st.sampled_from(["!", "-", "size", "string", "int", "type", "dyn"]), inner
    )
    members = st.builds(
        "{}.{}".format,
        inner,
        st.sampled_from(
            [
                "size()",
                "startsWith('a')",
                "matches('^a')",
                "a",
                "?a",
                "hasValue()",
                "includes(1)",
                "sum()",
                "major()",
            ]
        ),
    )
    macros = st.builds(
        "{}.{}({}, {})".format,
        inner,
        st.sampled_from(["all", "exists", "map", "filter", "exists_one"]),
        st.sampled_from("xy"),
        inner | st.sampled_from(["x == 'a'", "x > 1", "x", "y == x", "x in ['a', 'b']", "x != 1"]),
    )
    others = st.one_of(
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("has({}.{})".format, inner, st.sampled_from(["a", "zz"])),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}[?{}]".format, inner, inner),
        st.builds(
            "cel.bind(x, {}, {})".format, inner, inner | st.sampled_from(["x == 'a'", "x.a", "x"])
        ),
        st.builds("{}.orValue({})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({} in ['a', 'b'])".format, inner),
        st.builds("({} in [1, 2])".format, inner),
    )
    return binary | unary | members | macros | others


EXPRESSIONS = st.recursive(ATOMS, combine, max_leaves=8)
ATTRIBUTES = st.sampled_from(
    [
        {"int": 1},
        {"int": 0},
        {"bool": True},
        {"bool": False},
        {"string": "a"},
        {"string": ""},
        {"strings": ["a", "b"]},
        {"ints": [1, 2]},
        {"version": "1.0.0"},
    ]
)
DEVICES = st.builds(
    lambda attributes, shared: device(
        attributes=attributes, allowMultipleAllocations=shared, capacity={"m": {"value": "1Gi"}}
    ),
    st.dictionaries(st.sampled_from("abcvl"), ATTRIBUTES, min_size=2),
    st.booleans(),
)


@given(EXPRESSIONS, DEVICES)
def test_fast_path_gives_the_interpreters_values(expression: str, target: Device) -> None:
    """Where generated code gives a value, it is the interpreter's, class and all; it may always decline."""
    try:
        program = environment().compile(expression)
    except CompileError:
        return
    variables = {"device": device_value("d", target, Features())}
    exact = program.evaluate(variables, 1_000_000).value
    fast = program.fast_path("device", KNOWN_CLASSES)
    if fast is None or program.max_cost > 1_000_000:
        return
    try:
        found = fast(variables["device"])
    except (Bail, EvaluationError, LookupError, TypeError, ValueError, ArithmeticError):
        return
    assert (type(found), found) == (type(exact), exact) or _same_opaque(found, exact)


def _same_opaque(found: object, exact: object) -> bool:
    """Values of libraries have no Python equality."""
    return type(found) is type(exact) and repr(found) == repr(exact)


@given(EXPRESSIONS.map("dyn({})".format), DEVICES)
def test_selectors_never_crash(expression: str, target: Device) -> None:
    """Whatever the expression, the outcome is a compile error, an evaluation error or a verdict; both ways agree on it."""
    try:
        selector = compile_selector(expression)
    except CompileError:
        return
    exact = selector.evaluate("d", target)
    try:
        found: object = selector.matches("d", target)
    except EvaluationError as error:
        found = str(error)
    assert found == (exact.value if exact.error is None else str(exact.error))
    assert selector.key("d", target) == selector.key("d", target)


def test_common_selectors_are_compiled() -> None:
    """What people write in selectors takes the fast path."""
    for expression in (
        'device.driver == "a"',
        'device.driver == "a" && device.attributes["d"].model == "h100"',
        'device.attributes["d"].model.matches("^h") || device.attributes["d"].index < 3',
        'device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.attributes["d"].version.isGreaterThan(semver("1.0.0"))',
        'has(device.attributes["d"].x) && device.attributes["d"].x in ["a", "b"]',
        'cel.bind(a, device.attributes["d"], a.x == 1 && a.y == 2)',
        'device.attributes["d"].?numa.orValue(-1) == 0',
        'device.attributes["d"].tags.exists(t, t == "a")',
    ):
        program = environment().compile(expression)
        assert program.fast_path("device", KNOWN_CLASSES) is not None, expression
