"""Quantities: what texts mean, how they print, how they compare."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import QuantityError
from drayman.api.quantity import MAX_BINARY, MAX_DIGITS, Format, Quantity

NANO = Fraction(1, 10**9)

AMOUNTS = {
    "0": 0,
    "-0": 0,
    "5": 5,
    "-5": -5,
    "+5": 5,
    ".5": Fraction(1, 2),
    "5.": 5,
    "007": 7,
    "1n": NANO,
    "1u": 1000 * NANO,
    "100m": Fraction(1, 10),
    "2k": 2_000,
    "2M": 2 * 10**6,
    "2G": 2 * 10**9,
    "2T": 2 * 10**12,
    "2P": 2 * 10**15,
    "2E": 2 * 10**18,
    "2Ki": 2 * 2**10,
    "2Mi": 2 * 2**20,
    "2Gi": 2 * 2**30,
    "2Ti": 2 * 2**40,
    "2Pi": 2 * 2**50,
    "2Ei": 2 * 2**60,
    "1.5Gi": 3 * 2**29,
    "1e3": 1000,
    "1E3": 1000,
    "12e-1": Fraction(6, 5),
    "1e+2": 100,
    "100E": 10**20,
    # Numbers finer than a billionth are rounded away from zero: who asks for some gets some.
    "0.1n": NANO,
    "-0.1n": -NANO,
    "1.0000000001": 1 + NANO,
    "1e-2000000000": NANO,
    "0e2000000000": 0,
    "0." + "0" * 900 + "1": NANO,
    # Only binary suffixes are capped.
    "9Ei": MAX_BINARY,
    "-9Ei": -MAX_BINARY,
    "99999999999999999999999Ki": MAX_BINARY,
    "9999999999999999999999999": 9999999999999999999999999,
    # Upstream's scanner needs no digits at all.
    "Ki": 0,
    "-": 0,
}


@pytest.mark.parametrize(("text", "amount"), AMOUNTS.items(), ids=lambda value: str(value)[:20])
def test_amount(text: str, amount: int | Fraction) -> None:
    """A text stands for exactly one number, whole ones being ints."""
    quantity = Quantity.parse(text)
    assert quantity.amount == amount
    assert isinstance(quantity.amount, int) == (Fraction(amount).denominator == 1)


CANONICAL = {
    "1.5": "1500m",
    "1.5Gi": "1536Mi",
    "1024Mi": "1Gi",
    "0.5Ki": "512",
    "0.1Mi": "104857600m",
    "1000": "1k",
    "1500": "1500",
    "1000000m": "1k",
    "1e4": "10e3",
    "100000e-3": "100",
    "1e-10": "1e-9",
    "1000E": "1e21",
    "16Ei": "9223372036854775807",
    "0Ki": "0",
    "-1536Mi": "-1536Mi",
    # What upstream takes for canonical already it prints as it came.
    "1.500": "1.500",
    "+5": "+5",
    "1E3": "1E3",
    "05": "05",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_canonical_text(text: str, canonical: str) -> None:
    """A quantity prints without a fraction, with the largest suffix that allows that."""
    assert str(Quantity.parse(text)) == canonical


BAD = [
    "",
    " ",
    "1 ",
    "x",
    "1x",
    "1i",
    "1.1.M",
    "1+1.0M",
    "0.1mi",
    "aoeu",
    "-3.01e-",
    "1ee3",
    "5-3",
    "1e",
    "Pi",
]
ABSURD = [
    "1e400",
    "1e100",
    "1" * 101,
    "1e99999999999999999999",
    "1" * 2000,
    "1e2147483648",
    "1e82E",
]


@pytest.mark.parametrize("text", [*BAD, *ABSURD], ids=lambda text: repr(text[:20]))
def test_no_quantity(text: str) -> None:
    """A text that is no quantity, or one beyond all measure, is refused without computing it."""
    with pytest.raises(QuantityError):
        Quantity.parse(text)


ROUNDED = {"1.1": (2, 1100), "-1.1": (-2, -1100), "1n": (1, 1), "5": (5, 5000), "1.0001": (2, 1001)}


@pytest.mark.parametrize(("text", "wanted"), ROUNDED.items())
def test_rounding(text: str, wanted: tuple[int, int]) -> None:
    """Whole units and thousandths are rounded away from zero."""
    quantity = Quantity.parse(text)
    assert (quantity.rounded_up(), quantity.milli()) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1", Format.DECIMAL_SI),
        ("1Ki", Format.BINARY_SI),
        ("1e3", Format.DECIMAL_EXPONENT),
        ("0.0001Ki", Format.DECIMAL_SI),
    ],
)
def test_format(text: str, wanted: Format) -> None:
    """The family of suffixes is remembered, unless a binary one would have to print a fraction below one."""
    assert Quantity.parse(text).format is wanted


def test_format_of_a_sum_is_that_of_the_first_that_is_not_zero() -> None:
    """Adding to zero takes over the format, as nothing was formatted before."""
    assert str(Quantity.ZERO + Quantity.parse("2Ki")) == "2Ki"
    assert str(Quantity.parse("1k") + Quantity.parse("2Ki")) == "3048"


def test_equal_texts_share_one_object() -> None:
    """Parsing the same text again costs no memory."""
    assert Quantity.parse("80Gi") is Quantity.parse("80Gi")


def test_the_absent_zero_is_told_from_a_written_one() -> None:
    """A written zero equals the default and is still another object, so that encoding keeps it."""
    written = Quantity.parse("0")
    assert written == Quantity.ZERO
    assert written is not Quantity.ZERO


def test_immutable() -> None:
    """Nothing about a quantity can be changed, since many objects share it."""
    with pytest.raises(AttributeError):
        Quantity.parse("1").amount = 2  # type: ignore[misc]


def test_copies_are_equal() -> None:
    """Quantities survive copying and pickling."""
    quantity = Quantity.parse("1.5Gi")
    for twin in (copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert twin == quantity
        assert str(twin) == str(quantity)


amounts = st.fractions(min_value=-(10**20), max_value=10**20, max_denominator=10**9).map(
    lambda value: Fraction(round(value * 10**9), 10**9)
)
quantities = st.builds(Quantity, amounts, st.sampled_from(Format))
suffixes = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "e3", "E-2"]
)
texts = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}.{fraction}{suffix}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**20),
    st.from_regex("[0-9]{0,12}", fullmatch=True),
    suffixes,
)


@given(quantities)
def test_printing_and_parsing_is_identity(quantity: Quantity) -> None:
    """The canonical text of a quantity means the same quantity, unless the cap of binary ones stops it."""
    again = Quantity.parse(str(quantity))
    if quantity.format is not Format.BINARY_SI or abs(quantity.amount) <= MAX_BINARY:
        assert again == quantity


@given(texts)
def test_canonical_text_is_stable(text: str) -> None:
    """Printing what was printed changes nothing any more."""
    once = str(Quantity.parse(text))
    assert str(Quantity.parse(once)) == once


@given(texts, texts)
def test_order_is_that_of_the_numbers(left: str, right: str) -> None:
    """Quantities compare, and hash, as the numbers they are."""
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert (a < b, a == b, a > b) == (
        a.amount < b.amount,
        a.amount == b.amount,
        a.amount > b.amount,
    )
    assert a != b or hash(a) == hash(b)


@given(quantities, quantities)
def test_subtraction_undoes_addition(a: Quantity, b: Quantity) -> None:
    """Arithmetic is exact."""
    assert (a + b) - b == a


@given(texts)
def test_rounding_never_comes_nearer_to_zero(text: str) -> None:
    """Rounding goes away from zero and by less than one."""
    quantity = Quantity.parse(text)
    distance = abs(quantity.rounded_up()) - abs(quantity.amount)
    assert 0 <= distance < 1


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """No text makes the parser fail in another way, and what it accepts it can print."""
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert len(str(quantity)) <= MAX_DIGITS + 40
