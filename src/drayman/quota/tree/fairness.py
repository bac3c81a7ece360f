"""Dominant resource shares: how much a queue or cohort borrows, as a part of what there is to lend, over its weight.

Per resource, what is used beyond the own quota in any flavor is compared with what the parent's children could use at most of it. The
largest of these ratios is the share. Nodes that borrow nothing, and those without a parent, have a share of zero. With a weight of
zero, any borrowing is infinitely much; two infinite shares are compared without their weights.
"""

from __future__ import annotations

import math

from msgspec import Struct

from drayman.quota.amounts import MOST
from drayman.quota.tree.nodes import FlavorAmounts, Node


class Share(Struct, frozen=True, order=True):
    """Ordered: finite ones by value, infinite ones above them, by their ratio."""

    infinite: bool
    value: float
    """In thousandths, over the weight unless that is zero."""
    resource: str = ""
    borrows: bool = True
    """Whether anything is borrowed at all. What is borrowed where nothing is lent makes no share."""

    @property
    def rounded(self) -> int:
        """As the status shows it: rounded up, and the largest number there is for an infinite one."""
        return MOST if self.infinite else math.ceil(self.value)

    def compare(self, other: Share) -> int:
        """Negative if this one is smaller. The resource does not count."""
        mine, theirs = (self.infinite, self.value), (other.infinite, other.value)
        return (mine > theirs) - (mine < theirs)


ZERO = Share(False, 0.0, borrows=False)


def share_of(node: Node, more: FlavorAmounts | None = None) -> Share:
    """The share of a node, as if it used so much more."""
    if node.parent is None:
        return ZERO
    borrowed: dict[str, int] = {}
    usage = node.usage
    for what, quota in node.subtree.items():
        amount = usage.get(what, 0) - quota
        if more is not None:
            amount += more.get(what, 0)
        if amount > 0:
            borrowed[what.resource] = borrowed.get(what.resource, 0) + amount
    if not borrowed:
        return ZERO
    ratio, dominant = 0.0, ""
    lendable = node.parent.lendable
    for resource, amount in sorted(borrowed.items()):
        most = lendable.get(resource, 0)
        if most > 0 and (found := amount * 1000.0 / most) > ratio:
            ratio, dominant = found, resource
    if node.weight == 0 and ratio > 0:
        return Share(True, ratio, dominant)
    return Share(False, ratio / node.weight if ratio else 0.0, dominant)
