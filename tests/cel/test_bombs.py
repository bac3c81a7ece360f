"""Expressions that try to take forever, or all memory, or the interpreter's stack."""

from __future__ import annotations

import sys

import pytest

from cel.environments import device
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError, CostLimitError, EvaluationError

DRIVER = "d"
DEVICE = device(attributes={"a": {"string": "x" * 64}}, capacity={"m": {"value": "1"}})


def doubling(levels: int, start: str, step: str, end: str) -> str:
    """`cel.bind(a1, ..., cel.bind(a2, ..., end))`, each variable made of the one before."""
    text = "".join(
        f"cel.bind(a{i}, {step.replace('A', start if i == 1 else f'a{i - 1}')}, "
        for i in range(1, levels + 1)
    )
    return text + end.replace("A", f"a{levels}") + ")" * levels


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 5000 + "1" + ")" * 5000, id="parentheses"),
        pytest.param("[" * 5000, id="brackets"),
        pytest.param("device" + ".a" * 5000, id="fields"),
        pytest.param("+".join("1" * 5000) + " == 5000", id="sum"),
        pytest.param("true ? true : " * 700 + "true", id="conditionals"),
        pytest.param('"' + "\\" * 10_001, id="backslashes"),
        pytest.param("'" * 10_000, id="quotes"),
        pytest.param("1" * 10_000 + " == 1", id="digits"),
        pytest.param("1e" + "9" * 10_000, id="exponent"),
        pytest.param('int("' + "9" * 10_000 + '") == 1', id="digits in text"),
        pytest.param('duration("' + "9" * 10_000 + 'h") == duration("1s")', id="duration"),
        pytest.param('device.driver.matches("((a{1,100}){1,100}){1,100}")', id="repetition"),
        pytest.param('device.driver.matches("\\\\C")', id="any byte"),
        pytest.param("\x01" * 10_000, id="control characters"),
    ],
)
def test_refused_when_compiling(expression: str) -> None:
    """Absurd text is a compile error, whatever its shape."""
    with pytest.raises(CompileError):
        compile_selector(expression)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("lists.range(1000000000000).size() > 0", id="range"),
        pytest.param(
            "lists.range(100000).all(x, lists.range(100000).all(y, x + y >= 0))", id="loops"
        ),
        pytest.param("lists.range(10).all(x," * 100 + "true" + ")" * 100, id="nested loops"),
        pytest.param(doubling(40, '"x"', "A + A", "A.size() > 0"), id="string that doubles"),
        pytest.param(doubling(60, "[1]", "A + A", "A == A"), id="list that doubles, compared"),
        pytest.param(doubling(60, "[1]", "A + A", "2 in A"), id="list that doubles, searched"),
        pytest.param(doubling(60, "[1]", "A + A", "A.sum() == 2"), id="list that doubles, summed"),
        pytest.param(
            doubling(60, '["a"]', "A + A", 'A.join() == ""'), id="list that doubles, joined"
        ),
        pytest.param(doubling(60, "1", "[A, A]", "A == A"), id="list of itself, compared"),
        pytest.param(
            doubling(60, "1", "[A, A]", '"%s".format([A]) == ""'), id="list of itself, printed"
        ),
        pytest.param(
            doubling(3, '"' + "x" * 1000 + '"', 'A.replace("", A)', "A.size() > 0"), id="replace"
        ),
    ],
)
def test_cut_off_when_evaluating(expression: str) -> None:
    """What compiles but explodes is ended by the cost limit."""
    selector = compile_selector(expression)
    assert isinstance(selector.evaluate(DRIVER, DEVICE).error, CostLimitError)
    with pytest.raises(CostLimitError):
        selector.matches(DRIVER, DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 249 + "true" + ")" * 249, id="parentheses"),
        pytest.param("!" * 10_000 + "true", id="negations"),
        pytest.param("dyn(" * 240 + "true" + ")" * 240, id="calls"),
        pytest.param("true ? true : " * 240 + "true", id="conditionals"),
        pytest.param(" && ".join(["true"] * 1000), id="conjunction"),
        pytest.param("[" * 240 + "]" * 240 + ".size() == 1", id="lists"),
        pytest.param("[1].all(x," * 120 + "true" + ")" * 120, id="loops"),
        pytest.param("+".join("1" * 250) + " == 250", id="sum"),
        pytest.param(doubling(60, "[1]", "A + A", "A.size() > 0"), id="list that doubles"),
        pytest.param(
            'device.attributes["d"].a.matches("(x+x+)+y") || true', id="regular expression"
        ),
    ],
)
def test_deep_but_legal(expression: str) -> None:
    """What upstream takes is taken, however deep, and leaves the interpreter's limits as they were."""
    before = sys.getrecursionlimit()
    assert compile_selector(expression).matches(DRIVER, DEVICE)
    assert sys.getrecursionlimit() == before


def test_errors_are_of_the_package() -> None:
    """A constant quantity of a billion digits is an evaluation error like any other."""
    with pytest.raises(EvaluationError):
        compile_selector('quantity("1e2000000000").isInteger()').matches(DRIVER, DEVICE)
