"""Queues and groups at rest: one rule each."""

from __future__ import annotations

import pytest

from drayman.simulate.queue_scenarios import (
    GivenGroup,
    GivenNode,
    GivenQueue,
    Scenario,
    settled,
)
from quota.shares.town import group, outcome, queue

TWO = [queue("a", 2, age=2000), queue("b", 2)]


def singles(
    in_queue: str, number: int, node: str = "", first: int = 0, **fields: int
) -> list[GivenGroup]:
    """Groups of one pod, each younger than the one before."""
    return [
        group(f"{in_queue}{n}", in_queue, f"1@{node}" if node else "1", age=900 - n, **fields)
        for n in range(first, first + number)
    ]


@pytest.mark.parametrize(
    ("nodes", "queues", "groups", "running", "evicted"),
    [
        # Order.
        pytest.param(
            {"n": 2},
            [queue("a", 2)],
            [group("young", "a", "1", "1", least=2, age=1), group("old", "a", "1", "1", least=2)],
            {"young": 0, "old": 2},
            {},
            id="of two groups of a queue the older starts",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 2)],
            [group("high", "a", "1", "1", least=2, age=1, priority=75), group("old", "a", "1", "1", least=2)],
            {"high": 2, "old": 0},
            {},
            id="priority comes before age",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 2)],
            [group("large", "a", "1", "1", "1", least=3), group("small", "a", "1", age=1)],
            {"large": 0, "small": 1},
            {},
            id="a group that cannot start does not hold back those behind it",
        ),
        pytest.param(
            {"n": 3},
            [queue("a", 3)],
            [group("grows", "a", "1@n", "1@n", "1", "1", least=2), group("new", "a", "1", age=1)],
            {"grows": 2, "new": 1},
            {},
            id="a group below its minimum goes before surplus pods",
        ),
        pytest.param(
            {"n": 7},
            [queue("a", 7)],
            [group(n, "a", *["1"] * 5, age=a) for n, a in (("x", 3), ("y", 2), ("z", 1))],
            {"x": 3, "y": 2, "z": 2},
            {},
            id="surplus is given out in turns",
        ),
        pytest.param(
            {"n": 1},
            [queue("a", 0, priority=200), queue("b", 1)],
            [*singles("a", 1), *singles("b", 1)],
            {"a0": 0, "b0": 1},
            {},
            id="a queue within its quota comes before one of higher priority",
        ),
        pytest.param(
            {"n": 8},
            [queue("a", weight=2), queue("b"), queue("c", 2, weight=0)],
            [
                group("x", "a", "1@n", "1@n", least=2),
                group("more", "a", *["1"] * 4, least=4),
                group("y", "b", "1@n", "1@n", least=2),
                *singles("b", 1),
                group("too-big", "c", "9"),
            ],
            {"x": 2, "more": 4, "y": 2, "b0": 0, "too-big": 0},
            {},
            id="of queues that are equally full with their groups, the one goes first that is less full without",
        ),
        pytest.param(
            {"n": 8},
            [
                queue("d", 1, weight=2),
                queue("p", parent="d", weight=2, age=2000),
                queue("q", parent="d", weight=2),
                queue("e", 4, weight=3),
                queue("r", 1, parent="e"),
                queue("s", 4, weight=4, parent="e"),
            ],
            [
                group("firm", "r", *["1@n"] * 5, least=5),
                *singles("p", 2),
                group("large", "q", "2"),
                group("grows", "s", "1@n", "1", "1", age=92, preemption_delay="300s"),
            ],
            {"firm": 5, "p0": 1, "p1": 1, "large": 0, "grows": 1},
            {},
            id="a department stands in line with the queue that had its last turn",
        ),
        pytest.param(
            {"n": 1},
            [queue("a", 0), queue("b", 0, priority=200)],
            [*singles("a", 1), *singles("b", 1)],
            {"a0": 0, "b0": 1},
            {},
            id="then the higher priority comes first",
        ),
        pytest.param(
            {"n": 4},
            [queue("a", 0), queue("b", 0, weight=3)],
            [*singles("a", 4), *singles("b", 4)],
            {"a0": 1, "a1": 0, "a2": 0, "a3": 0, "b0": 1, "b1": 1, "b2": 1, "b3": 0},
            {},
            id="then the one that uses less of its share",
        ),
        pytest.param(
            {"n": 4},
            [queue("a", 1), queue("b", 1)],
            singles("a", 4),
            {f"a{n}": 1 for n in range(4)},
            {},
            id="what nobody else can use is given out beyond shares",
        ),
        pytest.param(
            {"n": 1},
            [queue("a", 1)],
            [group("lost", "nowhere", "1"), *singles("a", 1)],
            {"lost": 0, "a0": 1},
            {},
            id="a group in a queue that does not exist waits",
        ),
        pytest.param(
            {"n": 2},
            [queue("d", 2), queue("a", 2, parent="d")],
            [group("inner", "d", "1@n"), group("new", "d", "1"), group("gang", "a", "1", "1", least=2)],
            {"inner": 1, "new": 0, "gang": 0},
            {},
            id="work is in leaves: elsewhere nothing starts, and what runs is counted and left alone",
        ),
        # Limits and quotas.
        pytest.param(
            {"n": 4},
            [queue("a", 4, limit=2)],
            singles("a", 3),
            {"a0": 1, "a1": 1, "a2": 0},
            {},
            id="nobody exceeds its limit",
        ),
        pytest.param(
            {"n": 4},
            [queue("d", 4, limit=1), queue("a", 4, parent="d")],
            singles("a", 2),
            {"a0": 1, "a1": 0},
            {},
            id="limits hold at each level",
        ),
        pytest.param(
            {"n": 4},
            [queue("d", 1), queue("a", 4, parent="d")],
            singles("a", 2, priority=100),
            {"a0": 1, "a1": 0},
            {},
            id="work that is not preemptible stays within quota at each level",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 2), queue("b", 0)],
            [*singles("b", 2, "n"), *singles("a", 1, priority=100)],
            {"b0": 1, "b1": 0, "a0": 1},
            {"b1": 1},
            id="within it, it reclaims like any other",
        ),
        # Reclaim.
        pytest.param(
            {"n": 4},
            TWO,
            [*singles("a", 4, "n"), *singles("b", 3)],
            {"a0": 1, "a1": 1, "a2": 0, "a3": 0, "b0": 1, "b1": 1, "b2": 0},
            {"a2": 1, "a3": 1},
            id="a queue gets its quota back, from the youngest",
        ),
        pytest.param(
            {"n": 4},
            [queue("a", 0), queue("b", 0)],
            [*singles("a", 4, "n"), *singles("b", 4)],
            {"a0": 1, "a1": 1, "a2": 0, "a3": 0, "b0": 1, "b1": 1, "b2": 0, "b3": 0},
            {"a2": 1, "a3": 1},
            id="without quotas, its fair share",
        ),
        pytest.param(
            {"n": 4},
            TWO,
            [group("gang", "a", *["1@n"] * 4, least=3), *singles("b", 1)],
            {"gang": 3, "b0": 1},
            {"gang": 1},
            id="surplus pods go first",
        ),
        pytest.param(
            {"n": 4},
            TWO,
            [group("gang", "a", *["1@n"] * 4, least=4), *singles("b", 1)],
            {"gang": 0, "b0": 1},
            {"gang": 4},
            id="a gang goes as a whole, even below quota",
        ),
        pytest.param(
            {"n": 4},
            TWO,
            [*singles("a", 2, "n"), group("x", "b", "1@n", "1@n", age=5), group("y", "b", "1", "1", least=2)],
            {"a0": 1, "a1": 1, "x": 2, "y": 0},
            {},
            id="nobody takes beyond its fair share",
        ),
        pytest.param(
            {"n": 4},
            [queue("d1", 3), queue("d2", 1), queue("p", 0, parent="d1"), queue("r", 1, parent="d2")],
            [*singles("p", 3, "n"), group("x", "r", "1@n"), *singles("r", 1, first=1)],
            {"p0": 1, "p1": 1, "p2": 1, "x": 1, "r1": 0},
            {},
            id="a project over quota is safe from others while its department is not over",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 2, age=2000), queue("b", 0)],
            [group("low", "b", "1@n", priority=10), group("high", "b", "1@n", priority=75, age=5), *singles("a", 1)],
            {"low": 0, "high": 1, "a0": 1},
            {"low": 1},
            id="in the queue that gives, the least important goes first",
        ),
        # Preempt.
        pytest.param(
            {"n": 3},
            [queue("a", 3)],
            [
                group("low", "a", "1@n", priority=10),
                group("old", "a", "1@n", priority=40, age=9),
                group("young", "a", "1@n", priority=40, age=8),
                group("high", "a", "1", "1", least=2, priority=60),
            ],
            {"low": 0, "old": 1, "young": 0, "high": 2},
            {"low": 1, "young": 1},
            id="the least important goes first, then the youngest",
        ),
        pytest.param(
            {"n": 1},
            [queue("a", 1)],
            [group("one", "a", "1@n"), group("other", "a", "1")],
            {"one": 1, "other": 0},
            {},
            id="equals do not preempt each other",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 1), queue("b", 1)],
            [group("low", "a", "1@n", priority=10), group("x", "b", "1@n"), group("high", "b", "1", priority=75)],
            {"low": 1, "x": 0, "high": 1},
            {"x": 1},
            id="preempting does not cross queues",
        ),
        pytest.param(
            {"n": 2},
            [queue("a", 2)],
            [group("low", "a", "1@n", priority=10), group("firm", "a", "1@n", priority=100), group("high", "a", "2", priority=75)],
            {"low": 1, "firm": 1, "high": 0},
            {},
            id="nobody goes if it would not be enough",
        ),
        # Consolidation.
        pytest.param(
            {"n": 2, "m": 2},
            [queue("a", 4)],
            [group("x", "a", "1@n"), group("y", "a", "1@m", age=9), group("large", "a", "2", age=5)],
            {"x": 1, "y": 1, "large": 1},
            {"y": 1},
            id="others are moved together",
        ),
        pytest.param(
            {"n": 2, "m": 2},
            [queue("a", 4)],
            [group("x", "a", "1@n"), group("y", "a", "2@m"), group("large", "a", "2")],
            {"x": 1, "y": 1, "large": 0},
            {},
            id="nobody is moved if one of them finds no place",
        ),
        pytest.param(
            {"n": 2, "m": 2},
            [queue("a", 4)],
            [group("x", "a", "1@n", priority=100), group("y", "a", "1@m", priority=100), group("large", "a", "2")],
            {"x": 1, "y": 1, "large": 0},
            {},
            id="work that is not preemptible is not moved",
        ),
    ],
)  # fmt: skip
def test_at_rest(
    nodes: dict[str, int],
    queues: list[GivenQueue],
    groups: list[GivenGroup],
    running: dict[str, int],
    evicted: dict[str, int],
) -> None:
    found = outcome(nodes, queues, groups)
    assert (found.running, found.evicted) == (running, evicted)


@pytest.mark.parametrize(
    ("setting", "has_run", "is_taken"),
    [
        pytest.param({"p": "300s"}, 100, False, id="its own setting, against a sister"),
        pytest.param({"p": "300s"}, 400, True, id="long enough"),
        pytest.param({"d": "300s"}, 100, False, id="inherited"),
        pytest.param({"d": "300s", "p": "0s"}, 100, True, id="zero is a setting"),
        pytest.param({"q": "300s"}, 100, True, id="the one that takes has no say"),
    ],
)
def test_minimum_run_time_between_sisters(
    setting: dict[str, str], has_run: float, is_taken: bool
) -> None:
    """Work is left alone by other queues until it has run for as long as its own queue, or one above, says."""
    queues = [
        queue("d", 2, reclaim_min_runtime=setting.get("d")),
        queue("p", 0, parent="d", reclaim_min_runtime=setting.get("p")),
        queue("q", 1, parent="d", reclaim_min_runtime=setting.get("q")),
    ]
    runs = group("runs", "p", "1@n", started_seconds_ago=has_run)
    found = outcome({"n": 1}, queues, [runs, group("new", "q", "1")])
    assert found.running == {"runs": not is_taken, "new": is_taken}


def test_the_setting_of_a_leaf_does_not_count_against_another_department() -> None:
    queues = [
        queue("d1", 0),
        queue("p", 0, parent="d1", reclaim_min_runtime="300s"),
        queue("d2", 1),
        queue("r", 1, parent="d2"),
    ]
    runs = group("runs", "p", "1@n", started_seconds_ago=10)
    found = outcome({"n": 1}, queues, [runs, group("new", "r", "1")])
    assert found.running == {"runs": 0, "new": 1}


def test_surplus_pods_have_no_minimum_run_time() -> None:
    queues = [queue("a", 2, preempt_min_runtime="300s")]
    runs = group("runs", "a", "1@n", "1@n", started_seconds_ago=10)
    high = group("high", "a", "1", "1", least=1, priority=75)
    assert outcome({"n": 2}, queues, [runs, high]).running == {"runs": 1, "high": 1}


@pytest.mark.parametrize(
    ("ago", "grace", "runs"),
    [
        pytest.param(100, None, 0, id="a minute is enough"),
        pytest.param(30, None, 1, id="less is not"),
        pytest.param(30, "10s", 0, id="unless it says so"),
        pytest.param(1000, "-1s", 1, id="negative means never"),
    ],
)
def test_a_gang_below_its_minimum_is_ended(ago: float, grace: str | None, runs: int) -> None:
    fields = {"stale_seconds_ago": ago, "started_seconds_ago": 2000.0}
    gang = group("gang", "a", "1@n", "1", least=2, staleness_grace_period=grace, **fields)
    found = outcome({"n": 1}, [queue("a", 2)], [gang])
    assert found.running == {"gang": runs}
    assert found.evicted == ({} if runs else {"gang": 1})


def test_a_member_that_fits_saves_a_gang() -> None:
    gang = group("gang", "a", "1@n", "1", least=2, stale_seconds_ago=100.0)
    assert outcome({"n": 2}, [queue("a", 2)], [gang]).running == {"gang": 2}


def test_whoever_has_to_wait_before_evicting_waits() -> None:
    queues = [queue("a", 1), queue("b", 0)]
    groups = [group("runs", "b", "1@n"), group("new", "a", "1", age=10, preemption_delay="60s")]
    assert outcome({"n": 1}, queues, groups).evicted == {}


def test_making_room_works_under_a_topology_constraint() -> None:
    """The gang needs a rack to itself, and takes that of the queue that has too much."""
    near = {"topology": "t", "requiredTopologyLevel": "rack"}
    groups = [
        *singles("b", 2, "n1"),
        *singles("b", 2, "n3", first=2),
        group("near", "a", "2", "2", least=2, topology_constraint=near),
    ]
    racks = {"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2"}
    nodes = dict.fromkeys(racks, 2)
    found = outcome(nodes, [queue("a", 4, age=2000), queue("b", 0)], groups, racks)
    places = found.result.placement
    assert found.running["near"] == 2
    assert len({racks[places["near-0"]], racks[places["near-1"]]}) == 1


# Where the KAI Scheduler evicts without end.


def test_who_was_evicted_does_not_come_before_the_one_it_was_evicted_for() -> None:
    """The queue of the small group stands in line with a gang that never fits, and yet the small group keeps what it was given."""
    queues = [queue("a", 1, age=2000), queue("b", 1)]
    groups = [
        group("elastic", "b", "1@n", "1@n", age=900),
        group("too-big", "a", "2", "2", least=2, age=600),
        group("small", "a", "1", age=500),
    ]
    found = outcome({"n": 2}, queues, groups)
    assert found.running == {"elastic": 1, "too-big": 0, "small": 1}
    assert found.evicted == {"elastic": 1}


def test_nobody_goes_for_a_group_that_the_limit_keeps_out() -> None:
    """Even without the surplus of the lower group, the gang would exceed the limit."""
    queues = [queue("a", 4, limit=4)]
    groups = [
        group("firm", "a", "1@n", "1@n", least=2, priority=100),
        group("elastic", "a", "1@n", "1@n", least=1, priority=10),
        group("gang", "a", "1", "1", "1", least=3, priority=75),
    ]
    found = outcome({"n": 8}, queues, groups)
    assert found.evicted == {}


def test_evictions_that_come_to_nothing_end() -> None:
    """A group preempts another, a third takes the room, and loses it to the first victim. When that has come round once, it is over."""
    queues = [
        queue("root", -1, limit=2),
        queue("a", 0, parent="root"),
        queue("b", 0, parent="root"),
    ]
    groups = [
        group("runs", "b", "1@n", age=2990),
        group("gang", "b", "1", "1", least=2, priority=60, age=857),
        group("first", "b", "1", priority=100, age=406),
        group("third", "a", "2", priority=60, age=2040),
    ]
    scenario = Scenario(
        name="round",
        nodes=(GivenNode(name="n", gpus=4),),
        queues=tuple(queues),
        pod_groups=tuple(groups),
    )
    cycles = settled(scenario).cycles
    assert cycles[-1].memory.barred == {"gang", "runs"}
    assert [bool(each.evicted) for each in cycles] == [True, True, True, False, False]


def test_nothing_is_beyond_a_quota_without_bound() -> None:
    """Its sisters reclaim nothing from a queue that is entitled to everything, though it uses more than its department has."""
    found = outcome(
        {"n": 4},
        [
            queue("d", 2),
            queue("e", 2),
            queue("p", -1, parent="d"),
            queue("q", 1, parent="d"),
            queue("r", 2, parent="e"),
        ],
        [*singles("p", 4, "n"), *singles("q", 1), group("too-big", "r", "5")],
    )
    assert (found.running["q0"], found.evicted) == (0, {})


def test_a_queue_without_any_share_gives_first() -> None:
    """Even where the group that goes is all that it has, and another queue is still fuller then."""
    found = outcome(
        {"n": 4},
        [queue("a", 1, weight=0), queue("none", 0, weight=0, age=5000), queue("b", 1, weight=0)],
        [*singles("none", 1, "n"), *singles("a", 3, "n"), *singles("b", 1)],
    )
    assert found.evicted == {"none0": 1}


@pytest.mark.parametrize(
    ("quota", "moved"),
    [
        pytest.param(1, {"a0": 1}, id="of a queue that uses its quota"),
        pytest.param(2, {}, id="not of a queue that uses less than its quota"),
    ],
)
def test_work_that_is_not_preemptible_moves_where_it_may_reclaim(
    quota: int, moved: dict[str, int]
) -> None:
    found = outcome(
        {"n1": 2, "n2": 2},
        [queue("a", quota), queue("b", quota), queue("c", 2)],
        [*singles("a", 1, "n1"), *singles("b", 1, "n2"), group("firm", "c", "2", priority=100)],
    )
    assert (found.running["firm"], sum(found.evicted.values())) == (len(moved), len(moved))
