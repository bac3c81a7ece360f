"""The line of queues: kept up to date, it says what the order says from scratch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.queueing.queues import Queue, QueueTree
from drayman.quota.shares.accounts import Accounts
from drayman.quota.shares.line import KeptLine
from drayman.quota.shares.order import Order

DEPARTMENTS = ("d0", "d1")
LEAVES = tuple(f"q{number}" for number in range(6))
AMOUNTS = st.integers(0, 3)


class Nowhere:
    """A floor of so many GPUs on which nobody is."""

    def capacity(self) -> int:
        return 12


@st.composite
def trees(draw: st.DrawFn) -> QueueTree:
    def queue(name: str, parent: str) -> Queue:
        quota = draw(st.one_of(st.none(), AMOUNTS))
        priority = draw(st.sampled_from((100, 200)))
        return Queue(name=name, parent=parent, quota=quota, priority=priority)

    tops = [queue(name, "") for name in DEPARTMENTS]
    return QueueTree([*tops, *(queue(name, draw(st.sampled_from(DEPARTMENTS))) for name in LEAVES)])


CHANGES = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.one_of(st.none(), AMOUNTS), AMOUNTS), max_size=40
)
"""A leaf, how much its first group takes, and how much the leaf uses more than before."""


@given(trees(), CHANGES, st.lists(AMOUNTS, min_size=8, max_size=8))
def test_the_first_is_the_one_that_the_order_names(
    tree: QueueTree, changes: list[tuple[str, int | None, int]], shares: list[int]
) -> None:
    """Whatever groups come and go in leaves, and whatever these use."""
    accounts = Accounts(tree, (), Nowhere(), {})  # type: ignore[arg-type]
    order = Order(accounts, dict(zip((*DEPARTMENTS, *LEAVES), shares, strict=True)))
    line, requests = KeptLine(order), dict[str, int]()
    for leaf, request, used in changes:
        for name in tree.path(leaf):
            accounts.used[name] += used
        if request is None:
            requests.pop(leaf, None)
        else:
            requests[leaf] = request
        line.set(leaf, request)
        firsts = {each: each for each in requests}
        assert line.first() == (order.next_of(firsts, requests.__getitem__) if firsts else None)
