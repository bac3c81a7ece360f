"""What starts next of a group, and what it gives up next."""

from __future__ import annotations

import pytest

from drayman.placement.gangs.gang import Dialect, Gang, GangKey, Subgroup
from drayman.quota.shares.groups import (
    Group,
    Strength,
    Worker,
    can_exist,
    next_starts,
    next_to_go,
    strength_of,
)

KEY = GangKey(Dialect.KAI, "default", "g")


def gang(least: int = 0, *parts: Subgroup, least_children: int | None = None) -> Gang:
    return Gang(key=KEY, least=least, subgroups=parts, least_children=least_children)


def group(stated: Gang | None, text: str) -> Group:
    """Pods by their subgroups: `xxy`, and `-` for none."""
    workers = tuple(
        Worker(f"{part.strip('-')}{number}", "g", 1, part.strip("-"))
        for number, part in enumerate(text)
    )
    return Group(
        name="g",
        queue="q",
        priority=50,
        created=0,
        is_preemptible=True,
        gang=stated,
        workers=workers,
    )


def named(workers: tuple[Worker, ...]) -> str:
    return " ".join(each.name for each in workers)


TWO_OF_THREE = gang(
    0, Subgroup("x", "", 2), Subgroup("y", "", 1), Subgroup("z", "", 1), least_children=2
)
ALL = gang(0, Subgroup("y", "", 1), Subgroup("x", "", 2))
NESTED = gang(
    0, Subgroup("r"), Subgroup("s"), Subgroup("x", "r", 1), Subgroup("y", "s", 1), least_children=1
)


@pytest.mark.parametrize(
    ("stated", "pods", "running", "starts"),
    [
        pytest.param(gang(2), "---", 0, ["0 1"], id="the minimum at once"),
        pytest.param(gang(3), "---", 1, ["1 2"], id="what is missing of the minimum"),
        pytest.param(gang(2), "----", 2, ["2"], id="beyond it, one by one"),
        pytest.param(gang(0), "--", 0, ["0"], id="no minimum: one by one"),
        pytest.param(gang(3), "--", 0, [], id="too few for the minimum"),
        pytest.param(gang(1), "-", 1, [], id="nothing waits"),
        pytest.param(None, "-", 0, [], id="there is no telling what it is"),
        pytest.param(ALL, "xxxyy", 0, ["x0 x1 y3"], id="the minimum of each subgroup"),
        pytest.param(ALL, "xxyxy", 3, ["y4", "x3"], id="then one of either"),
        pytest.param(ALL, "xx-", 0, [], id="a pod in no subgroup does not count"),
        pytest.param(TWO_OF_THREE, "xxyz", 0, ["x0 x1 y2", "x0 x1 z3", "y2 z3"], id="any two that are complete"),
        pytest.param(TWO_OF_THREE, "yzxx", 2, ["x2 x3"], id="a third only as a whole"),
        pytest.param(ALL, "yxx", 0, ["x1 x2 y0"], id="the larger subgroup first, however they are listed"),
        pytest.param(NESTED, "xy", 0, ["x0", "y1"], id="one of two replicas"),
    ],
)  # fmt: skip
def test_what_starts_next(stated: Gang | None, pods: str, running: int, starts: list[str]) -> None:
    found = group(stated, pods)
    assert [named(each) for each in next_starts(found, found.workers[:running])] == starts


@pytest.mark.parametrize(
    ("stated", "pods", "gives"),
    [
        pytest.param(gang(1), "---", "2", id="the last one that it can do without"),
        pytest.param(gang(2), "--", "0 1", id="at its minimum all of it"),
        pytest.param(gang(3), "--", "0 1", id="below its minimum all of it"),
        pytest.param(ALL, "xxxy", "x2", id="of the subgroup that has one to spare"),
        pytest.param(ALL, "xxy", "x0 x1 y2", id="no subgroup has one to spare"),
    ],
)
def test_what_goes_next(stated: Gang, pods: str, gives: str) -> None:
    found = group(stated, pods)
    assert named(next_to_go(found, found.workers)) == gives


@pytest.mark.parametrize(
    ("stated", "pods", "strength"),
    [
        pytest.param(gang(2), "-", Strength.BELOW, id="below"),
        pytest.param(gang(2), "--", Strength.ENOUGH, id="enough"),
        pytest.param(gang(2), "---", Strength.BEYOND, id="beyond"),
        pytest.param(gang(0), "", Strength.BELOW, id="nobody is not enough, whatever the minimum"),
        pytest.param(ALL, "xx", Strength.BELOW, id="a subgroup is missing"),
        pytest.param(ALL, "xxy", Strength.ENOUGH, id="every subgroup is there"),
    ],
)
def test_strength(stated: Gang, pods: str, strength: Strength) -> None:
    found = group(stated, pods)
    assert strength_of(found, found.workers) is strength
    assert can_exist(found) is (strength is not Strength.BELOW)
