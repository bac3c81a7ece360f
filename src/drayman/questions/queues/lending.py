"""Whose quota it is that others use beyond their own.

Quota that is borrowed is not taken from anybody in particular: what is unused in a tree is there for all. So what is borrowed is divided:
within each cohort, the quota of the cohort itself is used first, and then each child that has something unused lends in proportion to that.
What is lent adds up to what is borrowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drayman.quota.amounts import FlavorResource
from drayman.quota.tree.nodes import Node


def lent_in(root: Node, what: FlavorResource) -> dict[str, int]:
    """What each queue and cohort of a tree lends, by name: queues as they are called, cohorts with a slash in front."""
    lent: dict[str, int] = {}
    _divide(root, what, 0, lent)
    return lent


def key_of(node: Node) -> str:
    """Queues and cohorts may have the same names."""
    return node.name if node.is_queue else f"/{node.name}"


def _divide(node: Node, what: FlavorResource, to_others: int, lent: dict[str, int]) -> None:
    """Divide what the children of a cohort borrow, and what the cohort lends to others, among those that have it."""
    if node.is_queue:
        lent[node.name] = to_others
        return
    wanted = to_others + sum(child.borrowed(what) for child in node.children)
    own = min(wanted, node.quota(what).nominal)
    lent[key_of(node)] = own
    shares = _shares(wanted - own, {child: _unused(child, what) for child in node.children})
    for child in node.children:
        _divide(child, what, shares[child], lent)


def _unused(node: Node, what: FlavorResource) -> int:
    """What its parent sees of its quota and it does not use itself."""
    local = node.local.get(what, 0)
    used = max(0, node.usage.get(what, 0) - local)
    return max(0, node.subtree.get(what, 0) - local - used)


def _shares(amount: int, unused: Mapping[Node, int]) -> dict[Node, int]:
    """Whole shares in proportion; what rounding leaves over goes to where most was cut off."""
    total = sum(unused.values())
    amount = min(amount, total)
    if not amount:
        return dict.fromkeys(unused, 0)
    shares = {node: amount * each // total for node, each in unused.items()}
    cut: Sequence[Node] = sorted(
        unused, key=lambda node: (-(amount * unused[node] % total), node.name)
    )
    for node in cut[: amount - sum(shares.values())]:
        shares[node] += 1
    return shares
