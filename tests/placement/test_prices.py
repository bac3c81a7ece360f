"""What labels and tables say about the terms of nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.errors import DocumentError
from drayman.placement.price_table import read_price_table, written
from drayman.placement.prices import (
    NO_PRICES,
    PLAIN,
    PRICE,
    SPOT,
    CapacityType,
    Offer,
    PriceTable,
    label_faults,
    offer_of,
    parse_price,
)

TYPE = "node.kubernetes.io/instance-type"
TABLE = read_price_table(
    "prices.yaml",
    b"""
currency: USD
instanceTypes:
  big: 98.32
  small:
    on-demand: "4.5"
    spot: 1.25
  only-spot: {spot: 0.5}
""",
)
KARPENTER = {"karpenter.sh/capacity-type": "spot"}


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("32.77", 32_770_000),
        ("0", 0),
        ("007", 7_000_000),
        ("0.0000015", 2),
        ("999999999", 999_999_999_000_000),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("1_000", None),
        ("1,5", None),
        (".5", None),
        ("5.", None),
        ("NaN", None),
        ("Infinity", None),
        ("\u0661", None),  # a digit, but not one of ours
        ("1\n", None),
        ("9999999999", None),
    ],
)
def test_a_price_is_a_plain_decimal_number(text: str, price: int | None) -> None:
    """It is kept in whole millionths; everything else is not a price."""
    assert parse_price(text) == price


@pytest.mark.parametrize(
    ("labels", "table", "offer"),
    [
        ({}, NO_PRICES, PLAIN),
        ({TYPE: "big"}, NO_PRICES, PLAIN),
        (KARPENTER, NO_PRICES, PLAIN),
        ({PRICE: "2.5"}, NO_PRICES, Offer(2_500_000)),
        ({SPOT: "true"}, NO_PRICES, Offer(None, is_spot=True)),
        ({SPOT: "false"}, NO_PRICES, PLAIN),
        ({PRICE: "2.5", **KARPENTER}, NO_PRICES, Offer(2_500_000, is_spot=True)),
        ({PRICE: "2.5", SPOT: "false", **KARPENTER}, NO_PRICES, Offer(2_500_000)),
        ({PRICE: "a lot", SPOT: "maybe"}, NO_PRICES, PLAIN),
        ({PRICE: "a lot", **KARPENTER}, NO_PRICES, PLAIN),
        ({TYPE: "big"}, TABLE, Offer(98_320_000)),
        ({TYPE: "big", PRICE: "1"}, TABLE, Offer(1_000_000)),
        ({TYPE: "big", PRICE: "a lot"}, TABLE, Offer(98_320_000)),
        ({TYPE: "big", **KARPENTER}, TABLE, Offer(98_320_000, is_spot=True)),
        ({TYPE: "small"}, TABLE, Offer(4_500_000)),
        ({TYPE: "small", SPOT: "true"}, TABLE, Offer(1_250_000, is_spot=True)),
        ({TYPE: "small", "eks.amazonaws.com/capacityType": "SPOT"}, TABLE, Offer(1_250_000, True)),
        ({TYPE: "small", "eks.amazonaws.com/capacityType": "ON_DEMAND"}, TABLE, Offer(4_500_000)),
        ({TYPE: "small", "cloud.google.com/gke-spot": "true"}, TABLE, Offer(1_250_000, True)),
        (
            {TYPE: "small", "kubernetes.azure.com/scalesetpriority": "spot"},
            TABLE,
            Offer(1_250_000, True),
        ),
        ({TYPE: "only-spot"}, TABLE, PLAIN),
        ({TYPE: "unknown"}, TABLE, PLAIN),
        ({TYPE: "unknown", **KARPENTER}, TABLE, Offer(None, is_spot=True)),
    ],
)
def test_labels_come_before_the_table(
    labels: dict[str, str], table: PriceTable, offer: Offer
) -> None:
    """What a cloud says about spot counts only where there are prices."""
    found = offer_of(labels, table)
    assert found == offer
    assert (found is PLAIN) == (offer is PLAIN)


def test_labels_that_make_no_sense_are_named() -> None:
    """With the node, the label and what would have been right."""
    labels = {PRICE: "32,77", SPOT: "yes"}
    node = convert(Node, {"metadata": {"name": "a", "labels": labels}})
    fine = convert(Node, {"metadata": {"name": "b", "labels": {PRICE: "1", SPOT: "true"}}})
    assert list(map(str, label_faults([node, fine]))) == [
        "node a: label drayman.dev/price-per-hour: '32,77' is not a price such as \"32.77\", and is ignored",
        'node a: label drayman.dev/spot: \'yes\' is not "true" or "false", and is ignored',
    ]


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1),
        st.dictionaries(st.sampled_from(CapacityType), st.integers(0, 10**15 - 1)),
        min_size=1,
    ),
    st.sampled_from(["", "USD", "\u20ac"]),
)
def test_a_table_can_be_written_and_read_again(
    types: dict[str, dict[CapacityType, int]], currency: str
) -> None:
    """Nothing is lost: another process decides by the same prices."""
    table = PriceTable(types, currency)
    assert read_price_table("p.json", written(table).encode()) == table


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "p.yaml: is empty; prices are given under instanceTypes"),
        ("[]", "p.yaml:1: the table must be a mapping"),
        ("instanceTypes:\n  a: 1\n---\nb: 1", "p.yaml:4: there is more than one document"),
        ("currency: EUR", "p.yaml:1: instanceTypes must be a mapping"),
        ("instanceTypes: {}", "p.yaml:1: instanceTypes has no prices"),
        (
            "instanceType:\n  a: 1",
            "p.yaml:1: instanceType is unknown; did you mean instanceTypes?",
        ),
        ("instanceTypes:\n  a: 1\n  b: lots", "p.yaml:3: b: 'lots' is not a price"),
        ("instanceTypes:\n  a: true", "p.yaml:2: a: True is not a price"),
        ("instanceTypes:\n  a: -1", "p.yaml:2: a: -1 is not a price"),
        ("instanceTypes:\n  a:\n    spot: 1\n    sopt: 2", "p.yaml:4: a: sopt is not a capacity"),
        ("instanceTypes:\n  a:\n    spot: []", "p.yaml:3: a: spot: [] is not a price"),
        ("instanceTypes:\n  a: 1\n  a: 2", "p.yaml:3: the key 'a' is there twice"),
        ("currency: [x]\ninstanceTypes: {a: 1}", "p.yaml:1: currency must be a short text"),
        ("instanceTypes: {a: 1", "p.yaml:1: not valid YAML"),
        (b"\xff\xfe", "p.yaml:1: not valid UTF-8"),
    ],
)
def test_a_table_that_is_wrong_says_where(text: str | bytes, error: str) -> None:
    """With the file and the line."""
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(DocumentError) as found:
        read_price_table("p.yaml", data)
    assert error in str(found.value)
