"""A search for victims that takes long is done in parts, beside everything else."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.placement.fit import PodNeeds
from drayman.placement.nominations import Nomination
from drayman.scheduler.making_room import LONGEST_S, MOST_SEARCHES, MakingRoom
from drayman.scheduler.preempting import Deciding, Preempted
from drayman.scheduler.unit import QueuedUnit


class Clock:
    """Passes a second whenever it is read, so that a break is always due."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class Searches:
    """Searches of a given number of parts, in place of those for victims."""

    def __init__(self, parts: int, *, finds: bool = True) -> None:
        self.parts = parts
        self.finds = finds
        self.waiting: set[str] = set()
        self.decided: list[str] = []
        self.put_off: list[str] = []
        self.done: list[str] = []
        """Whose part was done, in order."""
        self.room = MakingRoom(
            Clock(),
            lambda entry: entry.key in self.waiting,
            lambda entry, _: self.decided.append(entry.key),
            lambda entry: self.put_off.append(entry.key),
        )

    def search(self, uid: str) -> Deciding:
        for _part in range(self.parts):
            self.done.append(uid)
            assert self.room.is_due()
            yield
        if self.parts < 0:
            raise RuntimeError("it went wrong")
        if not self.finds:
            return None
        pod = convert(Pod, {"metadata": {"uid": uid}})
        return Preempted((pod,), (Nomination(pod, "node", PodNeeds.of(pod), ()),))

    def begin(self, uid: str) -> Any:
        self.waiting.add(uid)
        entry = QueuedUnit.of(convert(Pod, {"metadata": {"name": uid, "uid": uid}}), 0)
        return self.room.begin(entry, self.search(uid))


def test_a_short_search_is_done_at_once() -> None:
    searches = Searches(0)
    assert searches.begin("a") is None
    assert searches.decided == ["a"]


async def test_long_searches_take_turns_one_part_in_each_iteration_of_the_loop() -> None:
    searches = Searches(9)
    rests = [searches.begin("a"), searches.begin("b")]
    searches.done.clear()
    seen: list[int] = []

    async def beside() -> None:
        while len(searches.decided) < 2:
            seen.append(len(searches.done) + len(searches.decided))
            await asyncio.sleep(0)

    await asyncio.gather(*rests, beside())
    assert "aaa" not in "".join(searches.done)
    assert max(after - before for before, after in pairwise(seen)) == 1


async def test_one_search_per_pod() -> None:
    searches = Searches(2)
    rest = searches.begin("a")
    assert searches.begin("a") is None
    assert searches.decided == searches.put_off == []
    await rest
    assert searches.decided == ["a"]


async def test_who_is_refused_once_more_during_a_search_that_finds_nobody_looks_again() -> None:
    """What refused it again, or woke it, may have happened behind the back of the search; nothing else need ever happen."""
    searches = Searches(2, finds=False)
    rest = searches.begin("a")
    assert searches.begin("a") is None
    await rest
    assert searches.decided == searches.put_off == ["a"]


async def test_who_is_refused_once_more_during_a_search_that_finds_victims_waits_for_them() -> None:
    searches = Searches(2)
    rest = searches.begin("a")
    assert searches.begin("a") is None
    await rest
    assert searches.decided == ["a"]
    assert searches.put_off == []


async def test_a_unit_that_came_in_place_of_another_during_its_search_has_one_of_its_own() -> None:
    searches = Searches(2)
    rest = searches.begin("a")
    assert searches.begin("a") is None
    searches.waiting.clear()  # the one that the search is for
    await rest
    assert searches.decided == []
    assert searches.put_off == ["a"]


async def test_a_pod_that_no_longer_waits_needs_no_victims() -> None:
    searches = Searches(2)
    rest = searches.begin("a")
    searches.waiting.clear()
    await rest
    assert searches.decided == searches.put_off == []
    await searches.begin("a")
    assert searches.decided == ["a"], "it has a search of its own if it waits again"


async def test_no_number_of_long_searches_is_under_way() -> None:
    searches = Searches(2)
    rests = [searches.begin(f"p{number}") for number in range(MOST_SEARCHES)]
    assert searches.begin("one too many") is None
    assert searches.put_off == ["one too many"]
    await asyncio.gather(*rests)
    assert len(searches.decided) == MOST_SEARCHES


async def test_a_search_without_an_end_is_given_up() -> None:
    searches = Searches(10**9)
    await searches.begin("a")
    assert searches.put_off == ["a"]
    assert len(searches.done) <= 1 + LONGEST_S * 100


def test_a_search_that_goes_wrong_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    searches = Searches(-1)
    assert searches.begin("a") is None
    assert searches.put_off == ["a"]
    assert "it went wrong" in caplog.text
