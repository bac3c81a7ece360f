"""What nodes cost by the hour, and which of them are spot: nodes that their owner may take back at any time.

Prices come from a label of the node, or from a table by instance type (`price_table`). They are kept as whole millionths, so that sums are
exact. A node without either is just a node: nothing here concerns it, and where all nodes are like that, nothing is decided differently.

Clouds label spot nodes, but a label that was there before anyone thought of prices must not close a node to pods. So what a cloud says
counts only where prices are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from drayman.api.core import Node

PRICE: Final = "drayman.dev/price-per-hour"
"""The label of a node that says what it costs."""
SPOT: Final = "drayman.dev/spot"
"""The label of a node that says whether it is spot, which outranks what the cloud says; of a pod, whether it accepts such nodes."""
COST: Final = "drayman.dev/cost"
"""Of a pod: what matters is what its node costs."""
LOW: Final = "low"
SAID_BY_PODS: Final[Mapping[str, tuple[str, ...]]] = {COST: (LOW,), SPOT: ("true", "false")}
"""What pods may say in annotations or labels. The annotation counts where a label says something else."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
CLOUD_SPOT: Final[Mapping[str, str]] = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""The labels by which clouds mark spot nodes. Those who taint such nodes use the same keys and values."""
MILLION: Final = 1_000_000
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")
_WHETHER: Final = {"true": True, "false": False}


class CapacityType(StrEnum):
    """How a node is lent."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class PriceTable(Struct, frozen=True):
    """Prices by instance type."""

    types: Mapping[str, Mapping[CapacityType, int]] = {}
    """In millionths, by how the node is lent."""
    currency: str = ""
    """What amounts are in, as people write it."""


NO_PRICES: Final = PriceTable()


class Offer(Struct, frozen=True):
    """On which terms a node is there."""

    price: int | None = None
    """For an hour, in millionths; None if that is not known."""
    is_spot: bool = False


PLAIN: Final = Offer()
"""Of a node about which nothing is said. Compared by identity."""


class LabelFault(Struct, frozen=True):
    """A label of a node that cannot be understood. The node is used as if the label were not there."""

    node: str
    label: str
    value: str
    wanted: str

    def __str__(self) -> str:
        return f"node {self.node}: label {self.label}: {self.value!r} is not {self.wanted}, and is ignored"


def parse_price(text: str) -> int | None:
    """An amount in millionths; None if the text is not a plain decimal number. What is below a millionth is rounded."""
    if not _AMOUNT.fullmatch(text):
        return None
    return int((Decimal(text) * MILLION).to_integral_value(ROUND_HALF_EVEN))


def amount_of(price: int) -> float:
    """The amount as a number for people and programs."""
    return price / MILLION


def offer_of(labels: Mapping[str, str], table: PriceTable = NO_PRICES) -> Offer:
    """On which terms a node with these labels is there."""
    if not table.types and PRICE not in labels and SPOT not in labels:
        return PLAIN
    labelled = parse_price(labels[PRICE]) if PRICE in labels else None
    is_priced = labelled is not None or bool(table.types)
    is_spot = _WHETHER.get(labels.get(SPOT, ""), is_priced and _cloud_says_spot(labels))
    price = labelled
    if price is None:
        type_ = CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND
        price = table.types.get(labels.get(INSTANCE_TYPE, ""), {}).get(type_)
    return PLAIN if price is None and not is_spot else Offer(price, is_spot)


def label_faults(nodes: Iterable[Node]) -> Iterator[LabelFault]:
    """What cannot be understood about the terms of nodes."""
    for node in nodes:
        name, labels = node.metadata.name, node.metadata.labels
        price, spot = labels.get(PRICE), labels.get(SPOT)
        if price is not None and parse_price(price) is None:
            yield LabelFault(name, PRICE, price, 'a price such as "32.77"')
        if spot is not None and spot not in _WHETHER:
            yield LabelFault(name, SPOT, spot, '"true" or "false"')


def _cloud_says_spot(labels: Mapping[str, str]) -> bool:
    return any(labels.get(key, "").lower() == value.lower() for key, value in CLOUD_SPOT.items())
