"""The libraries together: names that several share, macros, static checks, and expressions that try to explode."""

from __future__ import annotations

import pytest

from drayman.cel.environment import Environment
from drayman.cel.errors import CompileError, CostLimitError, EvaluationError
from drayman.cel.functions import Library
from drayman.cel.libraries import INCLUDES, kubernetes_libraries
from drayman.cel.standard import OPTIONALS, STANDARD_LIBRARY
from drayman.cel.standard_macros import BINDINGS, STANDARD
from drayman.cel.types import DYN
from drayman.cel.values import UInt

LIMIT = 1_000_000
VARIABLES: dict[str, object] = {"anything": "text", "numbers": [3, 1, 2], "nothing": None}

ENVIRONMENT = Environment(
    (
        *STANDARD_LIBRARY,
        OPTIONALS,
        Library("macros", macros=(*STANDARD, *BINDINGS)),
        *kubernetes_libraries(),
        INCLUDES,
    ),
    variables=dict.fromkeys(VARIABLES, DYN),
)


def evaluate(expression: str) -> object:
    return ENVIRONMENT.compile(expression).evaluate(VARIABLES, LIMIT).value


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(
            '"héllo".indexOf("l") + [5, 6].indexOf(6)', 3, id="indexOf of strings and lists"
        ),
        pytest.param("numbers.indexOf(2)", 2, id="indexOf of something unknown"),
        pytest.param('anything.indexOf("x")', 2, id="indexOf of something unknown that is text"),
        pytest.param("numbers.sort()", [1, 2, 3], id="sort of something unknown"),
        pytest.param("numbers.sum() + numbers.max()", 9, id="sum and max of something unknown"),
        pytest.param("[1u, 2u].sum()", UInt(3), id="sum keeps the type"),
        pytest.param('["bb", "a"].sortBy(s, size(s))', ["a", "bb"], id="sortBy"),
        pytest.param("numbers.sortBy(n, -n)", [3, 2, 1], id="sortBy of something unknown"),
        pytest.param("[[2, 1], [0]].sortBy(l, l[0]).flatten()", [0, 2, 1], id="sortBy and flatten"),
        pytest.param('"a-b".split("-").join("+")', "a+b", id="split and join"),
        pytest.param('"%s=%d".format(["x", 1])', "x=1", id="format takes a mixed list"),
        pytest.param(
            'string(ip("::1")) + string(cidr("::/8"))', "::1::/8", id="string of addresses"
        ),
        pytest.param('cidr("10.1.2.3/8").ip() == ip("10.1.2.3")', True, id="ip of a prefix"),
        pytest.param('type(ip("::1")) == net.IP', True, id="the type of an address has a name"),
        pytest.param('type(cidr("::/1")) == net.CIDR', True, id="the type of a prefix has a name"),
        pytest.param(
            'quantity("1k").isGreaterThan(quantity("1"))', True, id="isGreaterThan of quantities"
        ),
        pytest.param(
            'semver("v2", true).isGreaterThan(semver("1.0.0"))',
            True,
            id="isGreaterThan of versions",
        ),
        pytest.param(
            'quantity("1Ki") == quantity("1024")', True, id="quantities are equal by value"
        ),
        pytest.param('quantity("1") != quantity("2")', True, id="and unequal otherwise"),
        pytest.param(
            'semver("1.0.0+a") == semver("1.0.0+b")', True, id="versions are equal without build"
        ),
        pytest.param(
            'url("http://h:1/p?a=1").getQuery()["a"]', ["1"], id="the query is a map of lists"
        ),
        pytest.param(
            'format.named("uuid").value() == format.uuid()',
            True,
            id="a format by name is the format",
        ),
        pytest.param(
            'format.dns1123Label().validate("a.b").value()', ["must not contain dots"], id="reasons"
        ),
        pytest.param("numbers.includes(3) && anything.includes(anything)", True, id="includes"),
        pytest.param('"a1b2".findAll("[0-9]", 1)', ["1"], id="findAll with a limit"),
        pytest.param("sets.intersects([1, 2], [2.0 == 2.0 ? 2 : 3])", True, id="sets"),
        pytest.param("[3, 1].isSorted() || [1, 3].isSorted()", True, id="isSorted"),
        pytest.param("[1, 2, 3].slice(1, 3).reverse()", [3, 2], id="slice and reverse"),
    ],
)
def test_value(expression: str, want: object) -> None:
    """The expression has this value."""
    assert evaluate(expression) == want


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("numbers.allowed()", id="there is no authorizer"),
        pytest.param('anything.isGreaterThan(quantity("1"))', id="text is no quantity"),
        pytest.param('quantity("1") == anything', id="a quantity and text cannot be compared"),
        pytest.param("nothing.sum() == 0", id="null has no sum"),
        pytest.param("[quantity('1')].map(q, dyn(q)).sort() == []", id="quantities have no order"),
        pytest.param('cidr("::/1").containsIP(dyn(1))', id="a number is no address"),
        pytest.param('url("x").getHost() == ""', id="not a URL"),
    ],
)
def test_error(expression: str) -> None:
    """The expression compiles and fails when it runs."""
    assert isinstance(evaluate(expression), EvaluationError)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('"abc".reverse()', id="strings are not reversed in version 2"),
        pytest.param("math.greatest(1, 2)", id="math is not there"),
        pytest.param('base64.encode(b"a")', id="nor are encoders"),
        pytest.param('jsonpatch.escapeKey("a")', id="nor are JSON patches"),
        pytest.param('regex.replace("a", "b", "c")', id="nor is the other regex library"),
        pytest.param("[1, 2].flatten()", id="a flat list is not flattened"),
        pytest.param("[[1]].sort()", id="lists have no order"),
        pytest.param('quantity("1") < quantity("2")', id="quantities have no operators"),
        pytest.param('string(quantity("1"))', id="quantities have no text"),
        pytest.param('"%d".format(["x"])', id="a format that cannot work"),
        pytest.param('"%d".format([1, 2])', id="a format with too many arguments"),
        pytest.param('"a".find("[")', id="a pattern that is none"),
        pytest.param('"a".findAll("(", 1)', id="a pattern that is none, with a limit"),
        pytest.param("1.sortBy(x, x)", id="a number is not sorted"),
        pytest.param("includes([1], 1)", id="includes is a member"),
        pytest.param("numbers.sign()", id="sign is not"),
    ],
)
def test_does_not_compile(expression: str) -> None:
    """The expression is refused before it runs."""
    with pytest.raises(CompileError):
        ENVIRONMENT.compile(expression)


def test_format_error_points_at_the_argument() -> None:
    """The issue has the column of the argument that does not fit."""
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile('"%s %d".format(["x", "y"])')
    assert [(issue.line, issue.column) for issue in caught.value.issues] == [(1, 22)]


def shared(levels: int, result: str, seed: str = "[1]") -> str:
    """An expression over `x`, a list of ten to the `levels` elements that is written in a few hundred characters."""
    for level in range(levels, 0, -1):
        inner = "x" if level == levels else f"v{level}"
        part = f"v{level - 1}" if level > 1 else seed
        result = f"cel.bind({inner}, [{', '.join([part] * 10)}], {result})"
    return result


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(shared(15, 'size("%s".format([x])) > 0'), id="format of shared lists"),
        pytest.param(shared(15, "size(x.flatten(99)) > 0"), id="flatten of shared lists"),
        pytest.param(
            shared(15, "size(x.flatten(99)) > 0", "[[]]"), id="flatten of nothing, shared"
        ),
        pytest.param(shared(15, "x.indexOf(x[0]) > 0"), id="indexOf in shared lists"),
        pytest.param(
            f'cel.bind(a, "{"a" * 1000}", size(a.replace("a", a).replace("a", a)) > 0)',
            id="replace twice",
        ),
        pytest.param(
            f'cel.bind(a, "{"a" * 1000}", size(lists.range(9000).map(i, a.replace("a", a))) > 0)',
            id="replace often",
        ),
        pytest.param(f'size(lists.range(90000).map(i, "{"a" * 1000}").join()) > 0', id="join"),
        pytest.param("size(lists.range(9223372036854775807)) > 0", id="range"),
        pytest.param("size(lists.range(2000).distinct()) > 0", id="distinct"),
        pytest.param("sets.contains(lists.range(2000), lists.range(2000))", id="sets"),
    ],
)
def test_bomb(expression: str) -> None:
    """An expression that asks for too much is cut off at the cost limit, before memory or patience run out."""
    assert isinstance(evaluate(expression), CostLimitError)
