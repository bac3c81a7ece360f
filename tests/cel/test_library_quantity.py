"""Quantities in expressions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel.environments import FUNCTIONS
from drayman.api.quantity import Quantity
from drayman.cel.errors import EvaluationError
from drayman.cel.libraries import quantity
from drayman.cel.libraries.quantity import FixedPoint, QuantityValue, fixed_point, parse_quantity

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]
TEXTS = st.builds(
    lambda number, fraction, suffix: f"{number}{fraction}{suffix}",
    st.integers(-(10**9), 10**9),
    st.sampled_from(["", ".5", ".25", ".001"]),
    st.sampled_from(SUFFIXES),
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("80Gi", True),
        ("1e3", True),
        ("-1", True),
        (".5", True),
        ("1GiB", False),
        ("", False),
        ("abc", False),
        ("1 Gi", False),
    ],
)
def test_is_quantity(text: str, want: bool) -> None:
    """`isQuantity` tells what `quantity` accepts."""
    assert quantity.is_quantity(text) is want
    if not want:
        with pytest.raises(EvaluationError):
            parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("50", 50, id="a number"),
        pytest.param("-50k", -50_000, id="a negative number with a suffix"),
        pytest.param("80Gi", 80 * 2**30, id="a binary suffix"),
        pytest.param("1e3", 1000, id="an exponent"),
        pytest.param("0", 0, id="zero"),
        pytest.param("00012", 12, id="leading zeros"),
        pytest.param("9223372036854775807", None, id="19 digits are too many"),
        pytest.param("922337203685477580", 922337203685477580, id="18 digits are not"),
        pytest.param("10E", None, id="more than 64 bits"),
        pytest.param("9E", 9 * 10**18, id="just within 64 bits"),
        pytest.param("500m", None, id="a fraction"),
        pytest.param("1000m", None, id="thousandths, even of a whole number"),
        pytest.param("1.0", None, id="a point, even before zero"),
        pytest.param("1.5k", 1500, id="a point that the suffix makes up for"),
        pytest.param("1.5Gi", None, id="a point with a binary suffix"),
        pytest.param("1Ei", None, id="a binary suffix too large"),
        pytest.param("100Ti", None, id="three digits of Ti are too many"),
        pytest.param("99Ti", 99 * 2**40, id="two digits are not"),
    ],
)
def test_integers(text: str, want: int | None) -> None:
    """A quantity is an integer if upstream's short form of it is."""
    value = parse_quantity(text)
    assert quantity.is_integer(value) is (want is not None)
    if want is None:
        with pytest.raises(EvaluationError, match="cannot convert value to integer"):
            quantity.as_integer(value)
    else:
        assert quantity.as_integer(value) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("100m", 0.1),
        ("700m", 0.7),
        ("0.7", 0.7000000000000001),
        ("1Ki", 1024.0),
        ("1.5Gi", 1610612736.0),
        ("-2k", -2000.0),
        ("1e30", 1e30),
    ],
)
def test_approximate_float(text: str, want: float) -> None:
    """The digits and the power of ten are rounded one after the other."""
    assert quantity.as_approximate_float(parse_quantity(text)) == pytest.approx(want, rel=1e-15)


def test_float_of_tenths_is_upstreams() -> None:
    """Seven tenths come out next to 0.7, because 0.1 is not a tenth; a half is exact."""
    assert quantity.as_approximate_float(parse_quantity("0.7")) != 0.7
    assert quantity.as_approximate_float(parse_quantity("0.5")) == 0.5


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1k", FixedPoint(1, 3)),
        ("1.50", FixedPoint(150, -2)),
        ("+5", FixedPoint(5, 0)),
        ("-5Ki", FixedPoint(-5120, 0)),
        (".5", FixedPoint(5, -1)),
        ("1n", FixedPoint(1, -9)),
        ("1.5n", None),
        ("0.5Ki", None),
    ],
)
def test_fixed_point(text: str, want: FixedPoint | None) -> None:
    """The short form is digits and a power of ten, unless there are too many digits."""
    assert fixed_point(text) == want


@pytest.mark.parametrize(
    ("left", "right", "integer"),
    [
        pytest.param("1", "2k", True, id="integers"),
        pytest.param("1", "500m", False, id="an integer and a fraction"),
        pytest.param("500m", "500m", False, id="fractions that add up"),
        pytest.param("0", "5", True, id="zero and an integer"),
        pytest.param("9E", "9E", False, id="a sum beyond 64 bits"),
        pytest.param("1", "1.5Gi", False, id="something that was too long"),
    ],
)
def test_integer_after_addition(left: str, right: str, integer: bool) -> None:
    """A sum keeps the short form while it can."""
    assert quantity.is_integer(quantity.add(parse_quantity(left), parse_quantity(right))) is integer


def test_integers_can_be_added() -> None:
    """`add` and `sub` take an int as well."""
    value = parse_quantity("1k")
    assert quantity.as_integer(quantity.add_int(value, 20)) == 1020
    assert quantity.as_integer(quantity.sub_int(value, 20)) == 980


def test_capacity_of_a_device() -> None:
    """A quantity of the API is seen as its text would be."""
    assert quantity.is_integer(QuantityValue.of(Quantity.parse("80Gi")))
    assert not quantity.is_integer(QuantityValue.of(Quantity.parse("500m")))


def test_equality_with_something_else() -> None:
    """A quantity cannot be compared with a number."""
    with pytest.raises(EvaluationError):
        parse_quantity("1").equals(1)


def test_equality_with_a_sum() -> None:
    """A sum can be compared with a quantity, but not the other way round."""
    total = quantity.add(parse_quantity("1"), parse_quantity("1"))
    assert total.equals(parse_quantity("2"))
    with pytest.raises(EvaluationError):
        parse_quantity("2").equals(total)


@given(TEXTS, TEXTS)
def test_order_is_that_of_amounts(left: str, right: str) -> None:
    """Comparisons agree with the exact amounts, and with each other."""
    a, b = parse_quantity(left), parse_quantity(right)
    x, y = Fraction(a.quantity.amount), Fraction(b.quantity.amount)
    assert quantity.compare_to(a, b) == (x > y) - (x < y)
    assert FUNCTIONS["quantity_is_less_than"](a, b) == (x < y)
    assert FUNCTIONS["quantity_is_greater_than"](a, b) == (x > y)
    assert a.equals(b) == (x == y)
    assert quantity.sign(a) == (x > 0) - (x < 0)


@given(TEXTS, TEXTS)
def test_subtraction_undoes_addition(left: str, right: str) -> None:
    """Adding and subtracting the same gives the same amount."""
    a, b = parse_quantity(left), parse_quantity(right)
    assert quantity.sub(quantity.add(a, b), b).equals(a)


@given(TEXTS)
def test_short_form_is_exact(text: str) -> None:
    """Where there is a short form it is the amount."""
    value = parse_quantity(text)
    if value.number is not None:
        assert value.number.value * Fraction(10) ** value.number.scale == value.quantity.amount
