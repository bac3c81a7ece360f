"""A node of the tree, cohort or cluster queue, and the arithmetic of what it may still use.

What a node has is worked out once, when the tree is built, and never changes (`subtree`, `local`, `potential`). What is used changes
all the time and belongs to the ledger (`tree/ledger.py`), the only one that writes `usage`. All amounts are per flavor and resource.

- `subtree`: the quota of the node and of everything below it that is lent upwards.
- `local`: the part of it that the lending limit keeps from the parent.
- `usage`: for a queue what its workloads hold; for a cohort what its children use beyond their local part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from drayman.quota.amounts import MOST, FlavorResource


class Quota(Struct, frozen=True):
    """What a queue or cohort has of a resource in a flavor."""

    nominal: int = 0
    borrowing_limit: int | None = None
    """How much more it may use; None: whatever others lend."""
    lending_limit: int | None = None
    """How much others may use of it; None: all."""


NO_QUOTA = Quota()

Quotas = Mapping[FlavorResource, Quota]
FlavorAmounts = Mapping[FlavorResource, int]


class Node:
    """A cohort, or the place of a cluster queue in the tree."""

    __slots__ = (
        "children",
        "height",
        "is_queue",
        "lendable",
        "local",
        "name",
        "parent",
        "potential",
        "quotas",
        "subtree",
        "usage",
        "weight",
    )

    def __init__(self, name: str, quotas: Quotas, weight: float, *, is_queue: bool) -> None:
        self.name = name
        self.quotas = quotas
        self.weight = weight
        self.is_queue = is_queue
        self.parent: Node | None = None
        self.children: tuple[Node, ...] = ()
        self.height = 0
        """A queue has 0, a cohort one more than the highest of its children."""
        self.subtree: dict[FlavorResource, int] = {}
        self.local: dict[FlavorResource, int] = {}
        self.potential: dict[FlavorResource, int] = {}
        """The most that it could use if nobody else used anything."""
        self.lendable: dict[str, int] = {}
        """By resource, all flavors together: what its children could use at most."""
        self.usage: dict[FlavorResource, int] = {}

    def __repr__(self) -> str:
        return f"{'queue' if self.is_queue else 'cohort'} {self.name}"

    def quota(self, what: FlavorResource) -> Quota:
        return self.quotas.get(what, NO_QUOTA)

    def ancestors(self) -> Iterator[Node]:
        """Its cohorts, from the nearest to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def root(self) -> Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def queues(self) -> Iterator[Node]:
        """The queues below it, or itself."""
        if self.is_queue:
            yield self
            return
        for child in self.children:
            yield from child.queues()

    def local_available(self, what: FlavorResource) -> int:
        """What is free of the part that the parent does not see."""
        free = self.local.get(what, 0) - self.usage.get(what, 0)
        return free if free > 0 else 0

    def available(self, what: FlavorResource) -> int:
        """What can still be used here. Negative where more is used than there is, because quota was taken away."""
        usage = self.usage.get(what, 0)
        subtree = self.subtree.get(what, 0)
        if self.parent is None:
            return subtree - usage
        local = self.local.get(what, 0)
        lent = self.parent.available(what)
        limit = self.quota(what).borrowing_limit
        if limit is not None:
            beyond = usage - local if usage > local else 0
            lent = min(lent, subtree - local - beyond + limit)
        return lent + (local - usage if local > usage else 0)

    def is_borrowing_with(self, what: FlavorResource, more: int) -> bool:
        """Whether it would use more than its own quota with so much more."""
        return self.usage.get(what, 0) + more > self.subtree.get(what, 0)

    def is_within_quota(self, contested: Iterable[FlavorResource]) -> bool:
        """Whether it uses no more than its own quota of any of these."""
        usage, subtree = self.usage, self.subtree
        return all(usage.get(what, 0) <= subtree.get(what, 0) for what in contested)

    def fits(self, wanted: FlavorAmounts) -> bool:
        """Whether all of this can be used here. Nothing of something always can."""
        return all(amount <= 0 or amount <= self.available(what) for what, amount in wanted.items())

    def borrowed(self, what: FlavorResource) -> int:
        """What it uses beyond its own quota. Without a cohort there is nobody to borrow from."""
        if self.parent is None:
            return 0
        return max(0, self.usage.get(what, 0) - self.subtree.get(what, 0))

    def lowest_that_fits(self, what: FlavorResource, amount: int) -> tuple[int, bool]:
        """The height of the lowest subtree whose quota holds this much more, and whether that is less than the whole tree.

        0 means that the queue need not borrow. If not even the whole tree does, the height is that of the root.
        """
        if self.parent is None or not self.is_borrowing_with(what, amount):
            return 0, self.parent is not None
        remaining = amount - self.local_available(what)
        for cohort in self.ancestors():
            if not cohort.is_borrowing_with(what, remaining):
                return cohort.height, cohort.parent is not None
            remaining -= cohort.local_available(what)
        return self.root.height, False


def derive(root: Node) -> None:
    """Work out what follows from the quotas of a tree, from the leaves up and from the root down."""
    _derive_upwards(root)
    _derive_downwards(root)


def _derive_upwards(node: Node) -> None:
    node.subtree = {what: quota.nominal for what, quota in node.quotas.items()}
    node.height = 0 if node.is_queue or not node.children else 1
    for child in node.children:
        _derive_upwards(child)
        node.height = max(node.height, child.height + 1)
        for what, amount in child.subtree.items():
            lent = amount - child.local.get(what, 0)
            node.subtree[what] = min(MOST, node.subtree.get(what, 0) + lent)
    for what, amount in node.subtree.items():
        limit = node.quota(what).lending_limit
        if limit is not None and amount > limit:
            node.local[what] = amount - limit


def _derive_downwards(node: Node) -> None:
    if node.parent is None:
        node.potential = dict(node.subtree)
    else:
        node.potential = {}
        for what, lent in node.parent.potential.items():
            most = node.local.get(what, 0) + lent
            limit = node.quota(what).borrowing_limit
            if limit is not None:
                most = min(most, node.subtree.get(what, 0) + limit)
            node.potential[what] = min(MOST, most)
    node.lendable = {}
    for what, amount in node.potential.items():
        node.lendable[what.resource] = node.lendable.get(what.resource, 0) + amount
    for child in node.children:
        _derive_downwards(child)
