"""How what is there is divided among queues."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.placement.queueing.queues import Queue, QueueTree
from drayman.quota.shares.division import divide, fair_shares
from quota.shares.portions import Sister, portions
from rounds import rounds

MANY = 1000


def q(name: str, quota: int | None = 0, weight: int = 1, **fields: object) -> Queue:
    return Queue(name=name, quota=quota, weight=weight, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("total", "queues", "demand", "shares"),
    [
        pytest.param(
            4, [q("a", 3), q("b", 3)], {"a": 9, "b": 9}, {"a": 3, "b": 3}, id="quota is given even if there is less"
        ),
        pytest.param(8, [q("a", 6), q("b", 2)], {"a": 1, "b": 9}, {"a": 1, "b": 7}, id="nobody gets more than it wants"),
        pytest.param(
            10,
            [q("a", 2, 0), q("b", 2, 1)],
            {"a": MANY, "b": MANY},
            {"a": 2, "b": 8},
            id="weight 0 gets its quota alone",
        ),
        pytest.param(
            10,
            [q("a", priority=200, created=9.0), q("b", 3, priority=50)],
            {"a": MANY, "b": MANY},
            {"a": 7, "b": 3},
            id="quota comes before priority, and what is left goes by priority",
        ),
        pytest.param(
            100, [q("a", 0, 1), q("b", 0, 3)], {"a": MANY, "b": MANY}, {"a": 25, "b": 75}, id="weights 1 and 3 give a quarter and the rest"
        ),
        pytest.param(
            2, [q("a", 0, 1), q("b", 0, 2)], {"a": MANY, "b": MANY}, {"a": 1, "b": 1}, id="the larger remainder, not the larger weight"
        ),
        pytest.param(
            1,
            [q("a", created=2.0), q("b", created=1.0)],
            {"a": MANY, "b": MANY},
            {"a": 0, "b": 1},
            id="of equal remainders, the older queue",
        ),
        pytest.param(
            1,
            [q("a", 0), q("b", 0), q("c", 0, priority=50)],
            {"a": MANY, "b": MANY, "c": MANY},
            {"a": 0, "b": 0, "c": 1},
            id="what rounding leaves goes to the next priority first",
        ),
        pytest.param(
            10,
            [q("a", 0, 1, limit=2), q("b", 0, 1)],
            {"a": MANY, "b": MANY},
            {"a": 2, "b": 8},
            id="a limit leaves the rest to others",
        ),
        pytest.param(
            9,
            [q("a", None), q("b", 2)],
            {"a": MANY, "b": MANY},
            {"a": 9, "b": 2},
            id="no quota stated counts as everything",
        ),
    ],
)  # fmt: skip
def test_division(
    total: int, queues: list[Queue], demand: dict[str, int], shares: dict[str, int]
) -> None:
    assert divide(queues, total, demand) == shares


def test_a_department_divides_what_it_gets() -> None:
    """The share of a queue is what there is for those below it."""
    tree = QueueTree(
        [
            q("d1", 6),
            q("d2", 2),
            q("p", 0, 1, parent="d1"),
            q("q", 0, 2, parent="d1"),
            q("r", parent="d2"),
        ]
    )
    demand = {"d1": MANY, "d2": MANY, "p": MANY, "q": MANY, "r": MANY}
    assert fair_shares(tree, 8, demand) == {"d1": 6, "d2": 2, "p": 2, "q": 4, "r": 2}


amounts = st.integers(0, 12)


@st.composite
def sisters(draw: st.DrawFn, priorities: Sequence[int] = (50, 100, 200)) -> list[Queue]:
    return [
        q(
            f"q{number}",
            draw(st.none() | amounts),
            draw(st.integers(0, 5)),
            limit=draw(st.none() | amounts),
            priority=draw(st.sampled_from(priorities)),
            created=float(draw(st.integers(0, 3))),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


demands = st.lists(st.integers(0, 20), min_size=5, max_size=5).map(
    lambda found: {f"q{number}": amount for number, amount in enumerate(found)}
)


def wanted_by(queue: Queue, demand: dict[str, int]) -> Fraction:
    most = demand[queue.name]
    return Fraction(most if queue.limit is None else min(most, queue.limit))


@given(sisters(), demands, st.integers(0, 40))
def test_nobody_is_above_what_it_wants_or_may_have(
    queues: list[Queue], demand: dict[str, int], total: int
) -> None:
    shares = divide(queues, total, demand)
    for each in queues:
        assert 0 <= shares[each.name] <= wanted_by(each, demand)
        if each.quota is not None:
            assert shares[each.name] >= min(each.quota, wanted_by(each, demand))


@given(sisters(), demands, st.integers(0, 40))
def test_nothing_is_left_while_somebody_wants_it(
    queues: list[Queue], demand: dict[str, int], total: int
) -> None:
    """Beyond quotas no more is given than there is, and no unit stays idle that a queue with a weight wants."""
    shares = divide(queues, total, demand)
    guaranteed = sum(
        min(wanted_by(e, demand), total if e.quota is None else e.quota) for e in queues
    )
    given_out = sum(shares.values())
    assert given_out <= max(total, guaranteed)
    if any(e.weight and shares[e.name] < wanted_by(e, demand) for e in queues):
        assert given_out == max(total, guaranteed)


@given(sisters(), demands, st.integers(0, 40))
def test_names_and_lists_do_not_matter(
    queues: list[Queue], demand: dict[str, int], total: int
) -> None:
    assert divide(queues[::-1], total, demand) == divide(queues, total, demand)


def filled(queues: list[Queue], rest: Fraction, wanted: dict[str, Fraction]) -> dict[str, Fraction]:
    """What each gets if a level rises in vessels as wide as their weights, until all is poured out: computed from the events of it."""
    shares = dict.fromkeys(wanted, Fraction(0))
    open_ = {e.name: Fraction(e.weight) for e in queues if e.weight and wanted[e.name] > 0}
    while open_ and rest > 0:
        widths = sum(open_.values())
        name = min(open_, key=lambda n: (wanted[n] - shares[n]) / open_[n])
        rise = min((wanted[name] - shares[name]) / open_[name], rest / widths)
        for each, width in open_.items():
            shares[each] += rise * width
        rest -= rise * widths
        open_ = {n: w for n, w in open_.items() if shares[n] < wanted[n]}
    return shares


@given(sisters(priorities=(100,)), demands, st.integers(0, 40), st.integers(50, 200))
def test_shares_are_those_of_a_direct_computation(
    queues: list[Queue], demand: dict[str, int], total: int, scale: int
) -> None:
    """Beyond quotas, equals get what a rising level gives them, but for what rounding can cost."""
    total *= scale
    demand = {name: amount * scale for name, amount in demand.items()}
    queues = [
        q(
            e.name,
            0 if e.quota is None else int(e.quota) * scale,
            int(e.weight),
            limit=None if e.limit is None else int(e.limit) * scale,
        )
        for e in queues
    ]
    shares = divide(queues, total, demand)
    quotas = {e.name: min(wanted_by(e, demand), Fraction(e.quota or 0)) for e in queues}
    more = {e.name: wanted_by(e, demand) - quotas[e.name] for e in queues}
    ideal = filled(queues, Fraction(total) - sum(quotas.values()), more)
    for each in queues:
        assert abs(shares[each.name] - quotas[each.name] - ideal[each.name]) <= len(queues)


@settings(max_examples=rounds(300))
@given(sisters(), demands, st.integers(0, 40))
def test_shares_are_those_of_a_division_by_hand(
    queues: list[Queue], demand: dict[str, int], total: int
) -> None:
    """To the unit: who gets the last ones is decided by remainders and age."""
    by_hand = [
        Sister(
            e.name,
            -1 if e.quota is None else int(e.quota),
            -1 if e.limit is None else int(e.limit),
            int(e.weight),
            e.priority,
            -e.created,
            demand[e.name],
        )
        for e in queues
    ]
    assert divide(queues, total, demand) == portions(by_hand, total)


def test_what_comes_out_even_leaves_the_rest_to_the_largest_remainders() -> None:
    """One queue gets just what it wants. Another round by weight would give the last unit to the queue that rounding cost less."""
    queues = [q("a", weight=5), q("b", weight=4), q("c", weight=3)]
    assert divide(queues, 8, {"a": MANY, "b": MANY, "c": 2}) == {"a": 3, "b": 3, "c": 2}
