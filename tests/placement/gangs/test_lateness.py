"""Time limits of gangs that wait."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drayman.api.core import Pod, PodSchedulingGate
from drayman.api.custom_groups import PluginPodGroup
from drayman.api.times import seconds_of, timestamp_at
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.dialects import plugin
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.lateness import Delay, delay, time_to_wait
from placement.gangs.building import custom, enter, pod

START = seconds_of("2026-01-01T00:00:00Z")
SPEC = {"minMember": 2, "scheduleTimeoutSeconds": 600}


def member(name: str, created: float = 0.0, *, gate: bool = False, **fields: Any) -> Pod:
    made = pod(name, labels={plugin.LABEL: "g"}, **fields)
    made = replace(
        made, metadata=replace(made.metadata, creation_timestamp=timestamp_at(START + created))
    )
    gates = (PodSchedulingGate(name="later"),)
    return replace(made, spec=replace(made.spec, scheduling_gates=gates)) if gate else made


CASES: dict[str, tuple[dict[str, Any], list[Pod], float, float | None, Delay | None]] = {
    "it has time": (SPEC, [member("a"), member("b", 60)], 400, 200, None),
    "it is late": (SPEC, [member("a"), member("b", 60)], 720, 0, Delay(720, 600)),
    "members are missing": (SPEC, [member("a", 100)], 720, 0, Delay(620, 600)),
    "no limit": ({"minMember": 2}, [member("a"), member("b")], 720, None, None),
    "it runs": (SPEC, [member("a", node="n"), member("b", node="n")], 720, None, None),
    "one joins those that run": (
        SPEC,
        [member("a", node="n"), member("b", node="n"), member("c")],
        720,
        None,
        None,
    ),
    "a replacement is missing": (
        SPEC,
        [member("a", node="n"), member("b", 500)],
        1200,
        0,
        Delay(700, 600),
    ),
    "all have gates": (SPEC, [member("a", gate=True), member("b", gate=True)], 720, None, None),
    "the clock was set back by a day": (SPEC, [member("a", 86_400), member("b", 86_400)], 0, 0, None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_how_late_a_gang_is(case: str) -> None:
    """It waits from the creation of the oldest member that does."""
    spec, pods, now, left, wanted = CASES[case]
    book = GangBook()
    enter(book, custom(PluginPodGroup, spec))
    for each in pods:
        book.see(each)
    gang = book.gang(plugin.key_of("ml", "g"))
    assert isinstance(gang, Gang)
    assert time_to_wait(book, gang, START + now) == left
    assert delay(book, gang, START + now) == wanted
