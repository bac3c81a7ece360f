"""Random expressions on random devices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cel.environments import device
from drayman.api.resource import Device
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError, EvaluationError

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
