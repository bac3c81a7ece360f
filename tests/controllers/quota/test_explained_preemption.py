"""Explanations where others have to go, for quota or for room: whom the control loop drives out is whom explain says it would."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from controllers.quota.test_explained import come_to_rest
from controllers.quota.test_topologies import node
from controllers.quota.waiting_room import WORKLOADS, Room, admitted, waiting_room
from drayman.cluster.resources import PODS
from drayman.controllers.quota.book import Known, known
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.remedies import remedies_for
from drayman.explain.queues.settling import Settled, settle, take_back
from drayman.explain.queues.standing import Line
from drayman.questions.reading import read_world

LOWER: Final = {"preemption": {"withinClusterQueue": "LowerPriority"}}
RECLAIMS: Final = {"preemption": {"reclaimWithinCohort": "Any"}}
SEEDS: Final = range(6)


@dataclass(frozen=True)
class Work:
    """A workload: so many pods with so many CPUs each."""

    name: str
    cpu: int
    queue: str = "q"
    priority: int = 0
    pods: int = 1


@dataclass(frozen=True)
class Case:
    """Workloads that are admitted, and others that come when the loop is not there."""

    name: str
    """The story in one line."""
    nodes: tuple[int, ...]
    """The CPUs of each."""
    queues: Mapping[str, Mapping[str, Any]]
    there: tuple[Work, ...]
    coming: tuple[Work, ...]
    leaving: frozenset[str] = field(default=frozenset())
    """Who has to go."""
    says: str = ""
    """Words of what the first that comes is told, where it drives out nobody."""


CASES: Final = (
    Case(
        "quota of another, and its room",
        nodes=(4,),
        queues={"q": {"cpu": 4, **LOWER}},
        there=(Work("low", 3),),
        coming=(Work("high", 3, priority=5),),
        leaving=frozenset({"low"}),
    ),
    Case(
        "quota of another, and no node is large enough",
        nodes=(2, 2),
        queues={"q": {"cpu": 4, **LOWER}},
        there=(Work("low", 2),),
        coming=(Work("high", 3, priority=5), Work("small", 1)),
        says="others could be preempted for quota, but there would be no room",
    ),
    Case(
        "quota of two others, of which the room of one is not enough",
        nodes=(2, 4),
        queues={"q": {"cpu": 6, **LOWER}},
        there=(Work("large", 4), Work("low", 2)),
        coming=(Work("high", 3, priority=5),),
        leaving=frozenset({"large"}),
    ),
    Case(
        "quota, and the room of another",
        nodes=(4,),
        queues={"q": {"cpu": 8, **LOWER}},
        there=(Work("low", 3),),
        coming=(Work("high", 3, priority=5),),
        leaving=frozenset({"low"}),
    ),
    Case(
        "quota, and no node is large enough",
        nodes=(4,),
        queues={"q": {"cpu": 16, **LOWER}},
        there=(Work("low", 3),),
        coming=(Work("high", 5, priority=5), Work("small", 1)),
        says="if all left that it may preempt, there would still be no room",
    ),
    Case(
        "quota, and the room of another in a queue that preempts nobody",
        nodes=(4,),
        queues={"q": {"cpu": 8}},
        there=(Work("low", 3),),
        coming=(Work("high", 3, priority=5),),
        says="ClusterQueue q preempts nobody",
    ),
    Case(
        "room that is being made for one is not given to the next",
        nodes=(4,),
        queues={"q": {"cpu": 8, **LOWER}},
        there=(Work("low", 3),),
        coming=(Work("high", 4, priority=5), Work("small", 1)),
        leaving=frozenset({"low"}),
    ),
    Case(
        "more room is made for one than it needs, and the next has the rest",
        nodes=(4,),
        queues={"q": {"cpu": 8, **LOWER}},
        there=(Work("low", 4),),
        coming=(Work("high", 2, priority=5), Work("small", 1)),
        leaving=frozenset({"low"}),
    ),
    Case(
        "two want the same room",
        nodes=(4,),
        queues={"q": {"cpu": 16, **LOWER}},
        there=(Work("low", 4),),
        coming=(Work("high", 4, priority=5), Work("next", 4, priority=5)),
        leaving=frozenset({"low"}),
    ),
    Case(
        "quota that was lent, and its room",
        nodes=(4, 4),
        queues={
            "a": {"cpu": 4, "cohortName": "all", **RECLAIMS},
            "b": {"cpu": 4, "cohortName": "all"},
        },
        there=(Work("own", 4, "b", 1), Work("guest", 4, "b")),
        coming=(Work("owner", 2, "a"),),
        leaving=frozenset({"guest"}),
    ),
    Case(
        "quota that was lent, and no node is large enough",
        nodes=(4, 4),
        queues={
            "a": {"cpu": 8, "cohortName": "all", **RECLAIMS},
            "b": {"cpu": 0, "cohortName": "all"},
        },
        there=(Work("guest", 4, "b"),),
        coming=(Work("owner", 5, "a"),),
        says="others could be preempted for quota, but there would be no room",
    ),
    Case(
        "quota of another where there are no nodes",
        nodes=(),
        queues={"q": {"cpu": 4, **LOWER}},
        there=(Work("low", 3),),
        coming=(Work("high", 3, priority=5),),
        leaving=frozenset({"low"}),
    ),
)


async def submit(room: Room, work: Work) -> None:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": work.cpu}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pods = [{"name": "main", "count": work.pods, "template": template}]
    spec = {"queueName": work.queue, "podSets": pods, "priority": work.priority}
    await room.place.create(WORKLOADS, {"metadata": {"name": work.name}, "spec": spec})


def of_comers(keys: Iterable[str], coming: tuple[Work, ...]) -> set[str]:
    """Which of those that come are meant."""
    return {key.partition("/")[2] for key in keys} & {each.name for each in coming}


def predicted_victims(line: Line) -> set[str]:
    """Whom explain says the control loop drives out, for quota and for room."""
    settled = line.settled
    all_ = [*settled.victims.values(), *settled.cleared.values()]
    return {each.key.partition("/")[2] for victims in all_ for each in victims}


def driven_out(values: list[Known]) -> set[str]:
    """Who has been told to go, whatever became of it since."""
    return {each.name for each in values if each.status.condition("Preempted") is not None}


def is_decided(values: list[Any], starting: set[str], coming: tuple[Work, ...]) -> bool:
    """Whether some have quota, and the loop has said of the others that come why they wait: of several that are alike, to one of them."""
    states = {each.name: each.status for each in map(known, values)}
    have = all(states[name].is_true("QuotaReserved") for name in starting)
    alike: dict[Work, list[bool]] = {}
    for each in coming:
        if each.name not in starting:
            is_told = states[each.name].condition("QuotaReserved") is not None
            alike.setdefault(replace(each, name=""), []).append(is_told)
    return have and all(map(any, alike.values()))


def decided(settled: Settled) -> tuple[set[str], set[str], dict[str, str], dict[str, str]]:
    """Who gets quota and room, and who drives out whom."""
    victims = {each.key: by for by, those in settled.victims.items() for each in those}
    cleared = {each.key: by for by, those in settled.cleared.items() for each in those}
    return set(settled.given), set(settled.unfit), victims, cleared


def ask_everything(line: Line, coming: tuple[Work, ...]) -> None:
    """What would help those that come, and when they would start. The same is decided afterwards as before."""
    forecast = Forecast(line)
    for each in coming:
        key = f"default/{each.name}"
        remedies_for(line, key)
        forecast.estimate(key)
    with line.queues.room.looked_for():
        again = settle(line.queues)
    take_back(line.queues, again)
    assert decided(again) == decided(line.settled)


async def compare(
    room: Room, there: tuple[Work, ...], coming: tuple[Work, ...]
) -> tuple[Line, list[Known]]:
    """What explain says before the loop sees those that come, and what the loop has made of it, after having been found to agree."""
    for work in there:
        await submit(room, work)
        await room.workload(admitted, work.name)
    await room.place.crash()
    for work in coming:
        await submit(room, work)
    line = Line(await read_world(room.place.client, queues=True))
    ask_everything(line, coming)
    settled = line.settled
    now = [key for key in settled.given if line.is_admitted_now(key)]
    # Of those who have to go nothing runs, so they go at once, and make way for whoever drove them out.
    starting = of_comers([*now, *settled.victims, *settled.cleared], coming)
    await room.start()
    await room.place.until(WORKLOADS, lambda values: is_decided(values, starting, coming))
    values = [known(each) for each in await come_to_rest(room)]
    assert driven_out(values) == predicted_victims(line)
    assert of_comers((f"/{each.name}" for each in values if admitted(each)), coming) == starting
    return line, values


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.name)
async def test_those_have_to_go_that_explain_says_have_to(case: Case) -> None:
    """The same victims, the same who start, and the same words for those that drive out nobody."""
    async with waiting_room() as room:
        for number, cpu in enumerate(case.nodes):
            await node(room, f"n{number}", "a", cpu=cpu)
        for name, spec in case.queues.items():
            await room.queue(name=name, **spec)
        line, values = await compare(room, case.there, case.coming)
        assert predicted_victims(line) == case.leaving
        if case.says:
            first = next(each for each in values if each.name == case.coming[0].name)
            condition = first.status.condition("QuotaReserved")
            assert condition is not None
            assert case.says in condition.message
            place = line.place(f"default/{first.name}")
            assert (place.reason, place.message) == (condition.reason, condition.message)


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_same_have_to_go_in_any_market(seed: int) -> None:
    """Queues of a cohort with any rules of preemption, and workloads of any size, on nodes of two sizes or without nodes."""
    chosen = random.Random(seed)
    async with waiting_room() as room:
        for number in range(chosen.choice((0, 2, 3))):
            await node(room, f"n{number}", "a", cpu=chosen.choice((3, 5)))
        for name in ("x", "y"):
            rules = {
                "withinClusterQueue": chosen.choice(("Never", "LowerPriority")),
                "reclaimWithinCohort": chosen.choice(("Never", "LowerPriority", "Any")),
            }
            await room.queue(cpu=6, name=name, cohortName="all", preemption=rules)
        there = tuple(
            Work(f"t{number}", chosen.randint(1, 2), chosen.choice("xy"))
            for number in range(chosen.randint(1, 3))
        )
        coming = tuple(
            Work(f"c{number}", chosen.randint(2, 5), chosen.choice("xy"), 5, chosen.randint(1, 3))
            for number in range(chosen.randint(1, 3))
        )
        await compare(room, there, coming)


async def test_pods_of_those_that_have_to_go_count_until_they_are_gone() -> None:
    """Beside them there is room for a small one, and none for the one that drives them out: explain and the loop say so."""
    async with waiting_room() as room:
        await node(room, "n", "a", cpu=4)
        await room.queue(cpu=8, **LOWER)
        await submit(room, Work("low", 3))
        await room.workload(admitted, "low")
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": 3}}}
        labels = {"kueue.x-k8s.io/pod-group-name": "low"}
        spec = {"nodeName": "n", "restartPolicy": "Never", "containers": [container]}
        await room.place.create(
            PODS, {"metadata": {"name": "low-0", "labels": labels}, "spec": spec}
        )
        await room.place.crash()
        coming = (Work("high", 3, priority=5), Work("small", 1))
        for work in coming:
            await submit(room, work)
        line = Line(await read_world(room.place.client, queues=True))
        ask_everything(line, coming)
        assert predicted_victims(line) == {"low"}
        assert line.is_admitted_now("default/small")
        place = line.place("default/high")
        assert place.reason == "WaitingForPreemptedWorkloads"
        await room.start()
        await room.workload(lambda each: driven_out([each]) == {"low"}, "low")
        await room.workload(admitted, "small")
        high = await room.workload(
            lambda each: each.status.condition("QuotaReserved") is not None, "high"
        )
        condition = high.status.condition("QuotaReserved")
        assert condition is not None
        assert condition.status == "False"
