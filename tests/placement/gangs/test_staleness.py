"""Gangs below their quorum: which members count, and when a gang is only coming to its end."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.dialects import kai
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.quorum import Shortfall
from drayman.placement.gangs.staleness import fallen
from placement.gangs.building import custom, enter, pod

KEY = kai.key_of("ml", "g")
PARTS = {
    "minSubGroup": 1,
    "subGroups": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 2}],
}


def member(name: str, part: str = "", **fields: Any) -> Pod:
    labels = {kai.SUBGROUP: part} if part else {}
    return pod(name, stated={kai.POD_GROUP: "g"}, labels=labels, **fields)


def runs(*names: str, part: str = "") -> list[Pod]:
    return [member(name, part, node="n", phase="Running") for name in names]


def waits(*names: str) -> list[Pod]:
    return [member(name) for name in names]


def done(*names: str, **fields: Any) -> list[Pod]:
    return [member(name, node="n", phase="Succeeded", **fields) for name in names]


def failed(*names: str) -> list[Pod]:
    return [member(name, node="n", phase="Failed") for name in names]


def leaves(*names: str) -> list[Pod]:
    return [member(name, node="n", phase="Running", leaving=True) for name in names]


THREE = {"minMember": 3}
CASES: dict[str, tuple[dict[str, Any], list[Pod], dict[str, int], Shortfall | None]] = {
    "all run": (THREE, runs("a", "b", "c"), {}, None),
    "none has started": (THREE, waits("a", "b"), {}, None),
    "one has failed": (THREE, runs("a", "b") + failed("c"), {}, Shortfall(2, 3)),
    "one is being deleted": (THREE, runs("a", "b") + leaves("c"), {}, Shortfall(2, 3)),
    "the replacement has no node": (THREE, runs("a", "b") + waits("c"), {}, Shortfall(2, 3)),
    "all leave": (THREE, leaves("a", "b", "c"), {}, None),
    "one has succeeded": (THREE, runs("a", "b") + done("c"), {}, None),
    "all but one have succeeded": (THREE, runs("a") + done("b", "c"), {}, None),
    "one that succeeded is being deleted": (THREE, runs("a", "b") + done("c", leaving=True), {}, None),
    "those that succeeded are gone": (THREE, runs("a"), {"": 2}, None),
    "one has succeeded and one has failed": (
        THREE,
        runs("a") + done("b") + failed("c"),
        {},
        Shortfall(2, 3),
    ),
    "more than needed are left": (THREE, runs("a", "b", "c") + failed("d", "e"), {}, None),
    "no number is needed": ({"minMember": 0}, runs("a") + failed("b"), {}, None),
    "one complete part will do": (PARTS, runs("a", "b", part="a") + runs("c", part="b"), {}, None),
    "no part is complete": (
        PARTS,
        runs("a", part="a") + runs("c", part="b"),
        {},
        Shortfall(0, 1, "", counts_subgroups=True),
    ),
    "every part is needed": (
        {"subGroups": PARTS["subGroups"]},
        runs("a", "b", part="a") + runs("c", part="b"),
        {},
        Shortfall(1, 2, "b"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_which_gangs_are_below_their_quorum(case: str) -> None:
    """Members that have succeeded count, those that wait, failed or leave do not."""
    spec, pods, gone, wanted = CASES[case]
    book = GangBook()
    enter(book, custom(KaiPodGroup, spec))
    for each in pods:
        book.see(each)
    gang = book.gang(KEY)
    assert isinstance(gang, Gang)
    found = fallen(book, gang, gone)
    assert (None if found is None else found.lack) == wanted
    if found is not None:
        still = {p.metadata.uid for p in pods if p.status.phase == "Running"}
        still -= {p.metadata.uid for p in pods if p.metadata.deletion_timestamp}
        assert {m.uid for m in found.left} == still
